"""The queries that are measured: one meaning, asked of ranklog and in each peer's own words.

`mode`: "lines" returns the lines that match; "count" only their number; "groups" counts by call site,
"buckets" by call site and minute. What a peer can't ask is None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ranklog.client import Client
from tests.bench.corpus import NEEDLE

RUN = "llama-70b"
BUCKET = "1m"
_BUCKET_NS = 60_000_000_000
_AROUND = 10


@dataclass(frozen=True, slots=True)
class Question:
    """`query` is ranklog's with `limit` and `context`, `rg` the arguments.

    `where` is a condition over the plain table for DuckDB, `like` the same in ClickHouse's words where
    they differ; `statement` replaces the whole statement. `logsql` is VictoriaLogs' filter with pipes.
    `inside`: a part of a token is looked for, which token indexes can't help with.
    """

    name: str
    query: str
    rg: tuple[str, ...] | None = None
    where: str = ""
    like: str = ""
    logsql: str = ""
    mode: str = "lines"
    statement: str = ""
    limit: int = 0
    context: int = 0
    inside: bool = False

    def sql(self, where: str) -> str:
        """The whole statement over the table `plain`."""
        if self.statement:
            return self.statement
        if self.mode == "groups":
            return f"SELECT call_site, count(*) FROM plain WHERE {where} GROUP BY call_site"
        if self.mode == "buckets":
            bucket = f"ts - ts % {_BUCKET_NS} AS bucket"
            wanted = f"SELECT call_site, {bucket}, count(*) FROM plain WHERE {where}"
            return f"{wanted} GROUP BY call_site, bucket"
        wanted = "count(*)" if self.mode == "count" else "ts, rank, level, text"
        return f"SELECT {wanted} FROM plain WHERE {where}"

    @property
    def duckdb(self) -> str:
        """The statement for DuckDB."""
        return self.sql(self.where)

    @property
    def clickhouse(self) -> str:
        """The statement for ClickHouse."""
        return self.sql(self.like or self.where)

    @property
    def victorialogs(self) -> str:
        """The query for VictoriaLogs."""
        pipes = {
            "lines": "",
            "count": " | stats count() hits",
            "groups": " | stats by (call_site) count() hits",
            "buckets": " | stats by (call_site, _time:1m) count() hits",
        }
        return self.logsql + pipes[self.mode]


@dataclass(frozen=True, slots=True)
class Sample:
    """A line of the middle of the corpus: its id of one token, and where it stands."""

    token: str
    line_id: str
    rank: int
    ts_ns: int


def take_sample(client: Client, text_path: Path) -> Sample:
    """The line that the questions about one line are about. Raises where it is not in the store."""
    with text_path.open("rb") as text:
        text.seek(text_path.stat().st_size // 2)
        found = re.search(rb"shard ([0-9a-f]{12}) in", text.read(1 << 20))
    if found is None:
        raise RuntimeError(f"no id in the middle of {text_path}")
    token = found[1].decode()
    [line] = client.search(f'"{token}"', run=RUN).lines
    assert line.rank is not None
    return Sample(token, line.id, line.rank, line.ts_ns)


def questions(sample: Sample) -> list[Question]:
    """The suite."""
    token, inside = sample.token, sample.token[2:9]
    return [
        _literal("rare literal, several words", NEEDLE),
        _literal("rare literal, one word", "checksum"),
        _literal("absent literal, one word", "zookeeper"),
        _regex("rare regex with alternation", r"(Xid .*fallen|failed its checksum)"),
        Question(
            "id, whole token",
            rf"/\b{token}\b/",
            (rf"(?-u:\b){token}(?-u:\b)",),
            rf"regexp_matches(text, '\b{token}\b')",
            f"hasToken(text, '{token}')",
            f'"{token}"',
        ),
        _literal("id, part of a token, present", inside, inside=True),
        _literal("id, part of a token, absent", "q" + inside, inside=True),
        _regex("dense regex with a literal", r"loss=\d+\.\d+", "count"),
        _regex("regex without a literal", r"\d\d\d\d\d \w+ \d\d\d\d\d", "count"),
        Question(
            "case-insensitive literal",
            "/LOSS IS NAN/i",
            ("-i", "-F", "LOSS IS NAN"),
            "regexp_matches(text, '(?i)LOSS IS NAN')",
            "match(text, '(?i)LOSS IS NAN')",
            'i("LOSS IS NAN")',
        ),
        *_of_fields(),
        _newest(),
        _around(sample),
        Question(
            "two patterns, AND and NOT",
            r'"connection reset" /retried 1\d times/ NOT "rank 3"',
            None,
            "contains(text, 'connection reset') AND regexp_matches(text, 'retried 1[0-9] times') "
            "AND NOT contains(text, 'rank 3')",
            "text LIKE '%connection reset%' AND match(text, 'retried 1[0-9] times') "
            "AND NOT text LIKE '%rank 3%'",
            '"connection reset" ~"retried 1[0-9] times" !~"rank 3"',
        ),
    ]


def _of_fields() -> list[Question]:
    return [
        Question(
            "rank and level",
            "rank:7 level>=ERROR",
            where="rank = 7 AND level >= 40",
            logsql='{rank="7"} level:>=40',
        ),
        Question(
            "rank and iterations",
            "rank:7 iteration:100..110",
            where="rank = 7 AND iteration >= 100 AND iteration < 110",
            logsql='{rank="7"} iteration:range[100, 110)',
        ),
        Question(
            "numeric metadata comparison",
            "loss>=4 loss<4.01",
            where="loss >= 4 AND loss < 4.01",
            logsql="loss:range[4, 4.01)",
        ),
        Question(
            "count by call site",
            "level>=INFO",
            where="level >= 20",
            logsql="level:>=20",
            mode="groups",
        ),
        Question(
            "count by call site, minutes",
            "level>=INFO",
            where="level >= 20",
            logsql="level:>=20",
            mode="buckets",
        ),
    ]


def _newest() -> Question:
    columns = "SELECT ts, rank, level, text FROM plain"
    return Question(
        "newest 100 of a level",
        "level:INFO",
        statement=f"{columns} WHERE level = 20 ORDER BY ts DESC LIMIT 100",
        logsql="level:=20 | sort by (_time) desc limit 100",
        limit=100,
    )


def _around(sample: Sample) -> Question:
    """The line with ten before and ten behind it, of its stream: a rank is one stream here."""
    columns = f"SELECT ts, rank, level, text FROM plain WHERE rank = {sample.rank}"
    up_to = f"{columns} AND ts <= {sample.ts_ns} ORDER BY ts DESC LIMIT {_AROUND + 1}"
    behind = f"{columns} AND ts > {sample.ts_ns} ORDER BY ts LIMIT {_AROUND}"
    context = f"stream_context before {_AROUND} after {_AROUND}"
    return Question(
        "20 lines around a line",
        f"id:{sample.line_id}",
        statement=f"SELECT * FROM ({up_to}) UNION ALL SELECT * FROM ({behind})",
        logsql=f'{{rank="{sample.rank}"}} "{sample.token}" | {context}',
        context=_AROUND,
    )


def _literal(name: str, text: str, *, inside: bool = False) -> Question:
    like = f"text LIKE '%{text}%'"
    where = f"contains(text, '{text}')"
    logsql = f'~"{text}"' if inside else f'"{text}"'
    return Question(name, f'"{text}"', ("-F", text), where, like, logsql, inside=inside)


def _regex(name: str, pattern: str, mode: str = "lines") -> Question:
    ascii_only = pattern.replace(r"\d", "[0-9]").replace(r"\w", "[0-9A-Za-z_]")
    where = f"regexp_matches(text, '{pattern}')"
    escaped = pattern.replace("\\", "\\\\")
    like = f"match(text, '{escaped}')"
    return Question(name, f"/{pattern}/", (ascii_only,), where, like, f'~"{escaped}"', mode)
