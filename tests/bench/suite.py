"""The queries that are measured: one meaning, asked of ranklog, of rg, of DuckDB and of ClickHouse.

`mode`: "lines" returns every matching line; "count" only their number; "groups" counts by call site.
A peer that can't ask the question has None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.bench.corpus import NEEDLE


@dataclass(frozen=True, slots=True)
class Question:
    """`query` is ranklog's, `rg` the arguments, `where` a condition over the plain table.

    `like` is the condition in ClickHouse's words where they differ from DuckDB's.
    """

    name: str
    query: str
    rg: tuple[str, ...] | None
    where: str
    like: str = ""
    mode: str = "lines"

    def sql(self, where: str) -> str:
        """The whole statement over the table `plain`."""
        if self.mode == "groups":
            return f"SELECT call_site, count(*) FROM plain WHERE {where} GROUP BY call_site"
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


def questions(text_path: Path) -> list[Question]:
    """The suite; ids are taken from the middle of the corpus, so that they are there."""
    token = _sample_id(text_path)
    inside = token[2:9]
    return [
        _literal("rare literal, several words", NEEDLE),
        _literal("rare literal, one word", "checksum"),
        _literal("absent literal, one word", "zookeeper"),
        Question(
            "id, whole token",
            rf"/\b{token}\b/",
            (rf"(?-u:\b){token}(?-u:\b)",),
            rf"regexp_matches(text, '\b{token}\b')",
            f"hasToken(text, '{token}')",
        ),
        _literal("id, part of a token, present", inside),
        _literal("id, part of a token, absent", "q" + inside),
        _regex("rare regex with alternation", r"(Xid .*fallen|failed its checksum)"),
        _regex("dense regex with a literal", r"loss=\d+\.\d+", "count"),
        _regex("regex without a literal", r"\d\d\d\d\d \w+ \d\d\d\d\d", "count"),
        Question(
            "case-insensitive literal",
            "/LOSS IS NAN/i",
            ("-i", "-F", "LOSS IS NAN"),
            "regexp_matches(text, '(?i)LOSS IS NAN')",
            "match(text, '(?i)LOSS IS NAN')",
        ),
        Question("rank and level", "rank:7 level>=ERROR", None, "rank = 7 AND level >= 40"),
        Question(
            "rank and iterations",
            "rank:7 iteration:100..110",
            None,
            "rank = 7 AND iteration >= 100 AND iteration < 110",
        ),
        Question("count by call site", "level>=INFO", None, "level >= 20", mode="groups"),
    ]


def _literal(name: str, text: str) -> Question:
    like = f"text LIKE '%{text}%'"
    return Question(name, f'"{text}"', ("-F", text), f"contains(text, '{text}')", like)


def _regex(name: str, pattern: str, mode: str = "lines") -> Question:
    ascii_only = pattern.replace(r"\d", "[0-9]").replace(r"\w", "[0-9A-Za-z_]")
    where = f"regexp_matches(text, '{pattern}')"
    escaped = pattern.replace("\\", "\\\\")
    like = f"match(text, '{escaped}')"
    return Question(name, f"/{pattern}/", (ascii_only,), where, like, mode)


def _sample_id(path: Path) -> str:
    with path.open("rb") as text:
        text.seek(path.stat().st_size // 2)
        found = re.search(rb"shard ([0-9a-f]{12}) in", text.read(1 << 20))
    if found is None:
        raise RuntimeError(f"no id in the middle of {path}")
    return found[1].decode()
