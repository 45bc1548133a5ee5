"""Every option, defined once: parser, help and docs/cli.md are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ranklog.limits import SERIES_POINTS_DEFAULT


@dataclass(frozen=True, slots=True)
class Flag:
    """One option. `metavar` None: a switch without a value; `type` parses the value; `optional`: an
    expression that a word must match to be the value, which may be left out."""

    name: str
    help: str
    metavar: str | None = None
    default: Any = None
    choices: tuple[str, ...] = ()
    type: Any = None
    repeat: bool = False
    optional: str | None = None

    @property
    def takes_value(self) -> bool:
        """Whether a word after it belongs to it."""
        return self.metavar is not None or bool(self.choices)

    @property
    def settings(self) -> dict[str, Any]:
        """Keyword arguments of argparse's add_argument."""
        if not self.takes_value:
            return {"action": "store_true", "help": self.help}
        made: dict[str, Any] = {"help": self.help, "default": self.default, "metavar": self.metavar}
        if self.choices:
            made |= {"choices": self.choices}
        if self.optional is not None:
            made |= {"nargs": "?", "const": True}
        if self.type is not None:
            made |= {"type": self.type}
        if self.repeat:
            made |= {"action": "append"}
        return made


@dataclass(frozen=True, slots=True)
class Positional:
    """A word without dashes. `many`: any number, joined by blanks where it is a query."""

    name: str
    help: str
    many: bool = False
    optional: bool = False


def whole(text: str) -> int:
    """A number that is not negative."""
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


whole.__name__ = "whole number"


def seconds(text: str) -> float:
    """More than none."""
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError(text)
    return value


seconds.__name__ = "number of seconds"

WHERE = (
    Flag(
        "--store",
        "where the lines are: a folder, file://… or s3://bucket[/prefix] (default: $RANKLOG_STORE, else "
        "what `ranklog configure` kept, else the local store in the user's data directory)",
        "URL",
    ),
    Flag(
        "--api",
        "ask an HTTP API in place of a store (default: $RANKLOG_API; its key is $RANKLOG_API_KEY, else the "
        "configured one)",
        "URL",
    ),
    Flag("--tenant", "whose lines, only with --store (default: default)", "NAME"),
    Flag("--json", "print one JSON object a line, the report last; errors as JSON on stderr"),
)

RUN = Flag(
    "--run",
    "lines of one run: NAME is its newest launch; NAME@LAUNCH, NAME~1 (the one before), NAME~ok "
    "(the last that ended well), NAME@* (all)",
    "NAME",
)
LIMIT = Flag("--limit", "at most N (default: 1000; 0: no limit)", "N", 1000, type=whole)

RESTRICTIONS = (
    RUN,
    Flag("--attempt", "attempts, such as 0 or 1-2", "N"),
    Flag("--rank", "ranks, such as 3, 0-7 or 0,4", "RANKS"),
    Flag("--host", "host, in full or its short form", "NAME"),
    Flag("--level", "this level or above", "LEVEL"),
    Flag("--iteration", "iterations from A up to and without B; A.. and ..B are open", "A..B"),
    Flag("--since", "from a time, or from a span back from now: 1h", "TIME"),
    Flag("--until", "up to a time, or to a span back from now: 30m", "TIME"),
    Flag("--last", "a span back from the newest line in scope: 10m", "SPAN"),
    Flag("--tz", "zone of times without one, and of times shown (default: UTC)", "ZONE"),
)

FULL_SCAN = Flag("--full-scan", "answer without the index; the answer is the same")

MUTE_COMMON = Flag(
    "--mute-common",
    "without what every rank of the run says equally often, give or take a twentieth: what is left differs",
)

SEARCH = (
    LIMIT,
    Flag(
        "--order",
        "which end is kept and comes first; without it the newest are kept and printed oldest first",
        choices=("newest", "oldest"),
    ),
    Flag("--fields", "print these fields or metadata keys alone, such as time,rank,text", "LIST"),
    Flag("--context", "N lines before and after each match, in its stream", "N", 0, type=whole),
    Flag("--count", "how many lines, not which"),
    Flag("--by", "count by these fields", "FIELD,…"),
    Flag("--every", "count by buckets of time (10s) or of iterations (100i)", "SPAN"),
    Flag("--top", "of the groups of --by the K with the most lines", "K", type=whole),
    Flag(
        "--stats",
        "tell count, min, max, mean and quantiles of numeric metadata, such as loss,grad_norm, per group",
        "KEY,…",
    ),
    Flag("--explain", "what would be read and why, without reading it"),
    FULL_SCAN,
    Flag(
        "--timeout",
        "answer after S seconds with what was read by then; --cursor goes on with the rest",
        "S",
        type=seconds,
    ),
    Flag("--cursor", "the next page: the cursor that the answer before gave", "CURSOR"),
    Flag(
        "--pin",
        "keep what this answer looked at, and print its PIN (pin-…); with that: the answer again, without "
        "what came later",
        "PIN",
        optional=r"pin-[0-9a-f]{16}",
    ),
)

JOB = (
    Flag("--run", "the run's name (default: the script's)", "NAME"),
    Flag("--launch", "the launch's id, the same on every host (default: the launcher's)", "ID"),
    Flag("--nproc", "start N processes on this host, as ranks 0 to N-1", "N", type=whole),
    Flag("--config", "the job's configuration, kept with the run", "FILE"),
    Flag("--monitor", "read processors, memory, I/O, network and GPUs of this host meanwhile"),
    Flag(
        "--store",
        "send to this store, and end when everything is searchable (default: $RANKLOG_DESTINATION, "
        "$RANKLOG_STORE, else what is configured, else the local store in the user's data directory)",
        "URL",
    ),
    Flag("--destination", "send to a folder, kinesis://STREAM or the https://… of an API", "URL"),
    Flag("--spool", "where lines wait to be sent (default: $RANKLOG_SPOOL)", "DIR"),
    Flag(
        "--tenant",
        "whose lines (default: $RANKLOG_TENANT, else the tenant of the key, else default)",
        "NAME",
    ),
)

PROVIDER_PORT = Flag("--port", "of the provider (default 0: a free one)", "N", 0, type=whole)

AGENT = (
    Flag("--spool", "the folder that ranks log into (default: $RANKLOG_SPOOL)", "DIR"),
    Flag(
        "--destination",
        "a folder, store:DIR, s3://bucket, kinesis://STREAM or the https://… of an API "
        "(default: $RANKLOG_DESTINATION)",
        "URL",
    ),
    Flag(
        "--tail",
        "follow log files of a running job: a folder (such as torchrun's --log-dir) or a glob; again "
        "for more",
        "DIR",
        repeat=True,
    ),
    Flag("--run", "with --tail: the run's name (default: what the job's processes say)", "NAME"),
    Flag("--launch", "with --tail: the launch's id (default: as --run)", "ID"),
    Flag("--rank-from", "with --tail: an expression whose group is the rank in a path", "REGEX"),
    Flag("--once", "send what is there, and end"),
    Flag(
        "--stay",
        "work until told to stop, also while nobody logs: for a service, a sidecar, a DaemonSet",
    ),
    Flag("--mirror", "copy captured output to this console"),
    Flag(
        "--host-logs",
        "follow logs of the host too: kernel, nccl, slurm, kubelet, or auto; NAME=FILE for another place",
        "LOGS",
    ),
)

REPLAY = (
    Flag(
        "--destination",
        "where to: a folder, store:DIR, s3://bucket, kinesis://STREAM or the https://… of an API "
        "(default: $RANKLOG_DESTINATION)",
        "URL",
    ),
    Flag("--timeout", "give up after S seconds (default: 3600)", "S", 3600.0, type=seconds),
)

COMPARE = (
    Flag("--ranks", "ranks to set side by side, 2 to 8 of them: 0,7 or 0-3", "RANKS"),
    Flag(
        "--with",
        "another run to hold --run against, rank by rank: NAME, NAME@LAUNCH, NAME~1, NAME~ok, or ~1 "
        "and ~ok, launches of the same run",
        "RUN",
    ),
    Flag("--all", "equal stretches too"),
    Flag("--unified", "one line below the other, not side by side"),
    Flag("--limit", "at most N differing stretches (default: 1000; 0: all)", "N", 1000, type=whole),
    Flag("--exit-code", "exit with 4 where there is a difference"),
)

OUTLIERS = (
    Flag("--all", "ranks that deviate a little, too"),
    Flag("--png", "write the map of anomalies, ranks down and iterations or time across", "FILE"),
    Flag("--exit-code", "exit with 4 where a rank is odd"),
)

TRIAGE = (
    Flag("--html", "write a page to send to a colleague: one file, nothing to load", "FILE"),
    Flag("--exit-code", "exit with 4 where there is a suspect"),
)

WATCH = (
    Flag(
        "--exec",
        "run a shell command at each alert: JSON on its standard input, RANKLOG_ALERT_MESSAGE, _STATE, "
        "_ALERT, _SEVERITY, _RANKS, _QUERY and more in its environment; ended after 30 s",
        "CMD",
    ),
    Flag("--webhook", "POST each alert as JSON to this address; tried four times", "URL"),
    Flag("--every", "look every S seconds (default: 10)", "S", 10.0, type=seconds),
    Flag("--once", "look once and end"),
    Flag(
        "--state",
        "file that remembers what was told: a watch that is started again with it goes on",
        "FILE",
    ),
    Flag("--times", "stalled after K times the usual time (default: 10)", "K", 10.0, type=seconds),
    Flag("--patience", "and never before S seconds (default: 120)", "S", 120.0, type=seconds),
    Flag("--exit-code", "exit with 4 where the run failed, or an alert has not ended"),
)

STACKS = (
    Flag(
        "--thread",
        "compare main threads, or all threads of a process (default: main)",
        choices=("main", "all"),
        default="main",
    ),
    Flag("--exit-code", "exit with 4 where ranks stand elsewhere than most"),
)

SERIES = (
    Flag(
        "--by",
        "fold all ranks and dimensions into one series, but keep these apart: rank, host, attempt, layer, …",
        "FIELD,…",
    ),
    Flag("--every", "fold buckets of iterations (100i) or of time (10s), too", "SPAN"),
    Flag(
        "--aggregate",
        "how to fold (default: mean); spread is largest minus smallest",
        choices=("mean", "min", "max", "spread", "std", "median", "sum", "count", "last"),
    ),
    Flag(
        "--max-points",
        "at most N numbers of a series, both ends and all extremes among them (default: 2000; 0: all)",
        "N",
        SERIES_POINTS_DEFAULT,
        type=whole,
    ),
    Flag(
        "--stat",
        "of tensors the mean (default), min, max, std, norm, nan, inf or count",
        choices=("mean", "min", "max", "std", "norm", "nan", "inf", "count"),
        default="mean",
    ),
    Flag(
        "--detect",
        "what stands out: all of spike,drift,plateau,nan, or those that are named",
        "KINDS",
        optional=r"(spike|drift|plateau|nan)(,(spike|drift|plateau|nan))*",
    ),
    Flag("--superseded", "also iterations that were done again after a restart"),
    Flag("--timeout", "answer after S seconds with what was read by then", "S", type=seconds),
)

SQL = (Flag("--timeout", "give up after S seconds (default: 120)", "S", type=seconds),)

DOCTOR = (
    Flag("--destination", "where lines would go (default: $RANKLOG_DESTINATION)", "URL"),
    Flag("--spool", "where they would wait (default: $RANKLOG_SPOOL)", "DIR"),
)

RUNS = (
    Flag("--manifest", "all that is known of each run: code, configuration, hosts, attachments"),
)

CALLSITES = (
    Flag("--limit", "at most N (default: 50 on a terminal, else all; 0: all)", "N", type=whole),
    Flag("--uneven", "only what ranks do not say equally often"),
    Flag("--every", "also by buckets of time (10s) or of iterations (100i)", "SPAN"),
)

PATTERNS = (
    Flag("--limit", "the N largest (default: 50 on a terminal, else all; 0: all)", "N", type=whole),
    Flag(
        "--with",
        "an earlier run to tell what is new against: NAME, or ~1, the launch before",
        "RUN",
    ),
)

TAIL = (Flag("--limit", "end after N lines (default: never; ctrl-c ends it)", "N", 0, type=whole),)

IMPORT = (
    Flag("--run", "name of the run (needed)", "NAME"),
    Flag("--launch", "launch of the run (default: import)", "ID", "import"),
    Flag("--rank", "rank of all these files", "N", type=whole),
    Flag("--rank-from", "expression whose first group in a path is the rank", "REGEX"),
    Flag("--preset", "one family of rules that extract values (default: all)", "NAME"),
    Flag("--tz", "zone of times that name none (default: UTC)", "ZONE", "UTC"),
    Flag("--date", "a day near which times without a date lie", "YYYY-MM-DD"),
)

INGEST = (
    Flag("--follow", "go on with what comes, until ctrl-c"),
    Flag(
        "--again",
        "all that the stream holds, for a store that lost some of it; what it has is shown once",
    ),
)

EXPORT = (
    Flag("--out", "new or empty folder, or s3://bucket/prefix, to write to (needed)", "DIR"),
    Flag(
        "--format",
        "form of the files (default: parquet)",
        choices=("parquet", "jsonl", "text"),
        default="parquet",
    ),
    Flag("--pin", "the pinned question's lines, with certificate, segments and hashes", "PIN"),
)

MISSING = (
    Flag("--by", "who: rank, host or stream", default="rank", choices=("rank", "host", "stream")),
    Flag("--all", "those who said it as well"),
)

BY_WHOM = (
    Flag("--why", "the reason, for the log of actions", "TEXT", ""),
    Flag("--who", "on whose behalf (default: the user of this machine)", "NAME"),
)

RETENTION = (
    Flag("--run", "runs whose name fits, with * and ? (default: every run)", "PATTERN"),
    Flag("--dry-run", "say what apply would do, and do nothing"),
)

AUDIT = (
    Flag("--run", "frames with rows of this run: NAME, NAME@LAUNCH, NAME@*", "NAME"),
    Flag("--all", "every frame, verified ones too"),
    Flag("--log", "in place of that: what administrators did, when, who and why"),
)

DELETE = (
    Flag("--dry-run", "say what would be deleted, and delete nothing"),
    Flag("--yes", "do not ask"),
    Flag("--groups", "with each match the rest of its group: all lines of a traceback"),
)

SERVE = (
    Flag("--listen", "address and port (default: 127.0.0.1:8080)", "HOST:PORT", "127.0.0.1:8080"),
    Flag(
        "--keys",
        "store: answer who has a key of the store (ranklog keys create); or a JSON file with more of "
        "them: tenant -> list of SHA-256 of its keys, in hexadecimal, which read and write",
        "store|FILE",
    ),
    Flag(
        "--workers",
        "processes that answer (default: two per core, at most 8)",
        "N",
        type=whole,
    ),
    Flag(
        "--roles",
        "what this server does: api, ingest (frames in batches from a stream on disk into the store) and "
        "compact (also retention), with commas (default: api)",
        "LIST",
        "api",
    ),
    Flag(
        "--stream",
        "where frames wait for ingest (default with the role ingest: a folder beside the local store; "
        "with api alone frames are stored as they arrive)",
        "FOLDER",
    ),
    Flag("--window", "gather frames for S seconds (default: 1)", "S", 1.0, type=seconds),
    Flag(
        "--compact-every", "rest S seconds between passes (default: 300)", "S", 300.0, type=seconds
    ),
    Flag("--tls-cert", "certificate chain, PEM", "FILE"),
    Flag("--tls-key", "private key of the certificate, PEM", "FILE"),
)

USAGE = (
    Flag(
        "--quota",
        "set a quota: ingest_bytes_per_hour, scan_bytes_per_hour or requests_at_once; none lifts it",
        "NAME=N",
        repeat=True,
    ),
)

FORMAT = Flag(
    "--format", "json: as --json (default: text)", choices=("text", "json"), default="text"
)

SLO = (
    Flag("--since", "from a time, or from a span back from now (default: 30d)", "TIME"),
    Flag("--until", "up to a time, or to a span back from now (default: now)", "TIME"),
    Flag("--tz", "zone of times without one (default: UTC)", "ZONE"),
    Flag(
        "--set",
        "set an objective of the tenant, in ms or as a share: freshness_p99_ms=5000, completeness=0.999; "
        "none: no objective; default: the default again",
        "NAME=VALUE",
        repeat=True,
    ),
)

CANARY = (
    Flag(
        "--destination",
        "write there, through a producer and an agent: a folder, store:DIR, s3://bucket, kinesis://STREAM or "
        "the https://… of an API (default: $RANKLOG_DESTINATION, else the API or the store that is read)",
        "URL",
    ),
    Flag("--once", "one round, and end (default)"),
    Flag("--every", "a round every S seconds, until ctrl-c", "S", type=seconds),
    Flag("--lines", "lines a round (default: 20)", "N", 20, type=whole),
    Flag("--timeout", "wait S seconds until all are found (default: 60)", "S", 60.0, type=seconds),
)

QUARANTINE = (Flag("--unknown", "records that name no tenant, in place of a tenant's"),)

KEYS = (
    Flag(
        "--scope", "what an API key allows: read, write, admin, with commas (default: read)", "LIST"
    ),
    Flag("--expires", "until when it works: 90d, 12h (default: until it is revoked)", "TIME"),
    Flag("--name", "a name for people, shown by list", "NAME"),
    Flag("--ingest", "a key that frames are sealed with; it rotates the tenant's earlier ones"),
    Flag("--forget", "with revoke: remove the record too, so that no list shows it"),
)

CONFIGURE = (
    Flag("--stack", "a CloudFormation stack of template.yaml; its outputs say the rest", "NAME"),
    Flag("--api", "the address of an API, for who has a key and no AWS account", "URL"),
    Flag("--region", "the stack's region (default: of your AWS settings)", "REGION"),
    Flag("--profile", "your profile of AWS credentials, for the stack's bucket", "NAME"),
    Flag(
        "--key-file",
        "a file with a key of the API, as `ranklog keys create` prints it; - reads standard input",
        "FILE",
    ),
    Flag("--show", "what is configured; of the key its id"),
    Flag("--forget", "remove it"),
)

RULES = (
    Flag(
        "--sample", "file with lines to try the rules on (default: the rules' own examples)", "FILE"
    ),
)

DRY_RUN = (Flag("--dry-run", "only say what would be done"),)

COMPACT = (
    Flag(
        "--hour",
        "this event hour, in UTC, such as 2026-03-01T07; several times for several (default: every "
        "hour, and late arrivals)",
        "HOUR",
        repeat=True,
    ),
)

REINDEX = (
    Flag(
        "--drop-damaged",
        "delete damaged indexes that none could be put in the place of, once every segment beside "
        "them has one: what they said of streams is lost",
    ),
)


ALL: tuple[tuple[Flag, ...], ...] = (
    WHERE,
    RESTRICTIONS,
    SEARCH,
    JOB,
    AGENT,
    REPLAY,
    COMPARE,
    OUTLIERS,
    WATCH,
    STACKS,
    DOCTOR,
    RUNS,
    CALLSITES,
    PATTERNS,
    TAIL,
    IMPORT,
    INGEST,
    EXPORT,
    MISSING,
    AUDIT,
    BY_WHOM,
    RETENTION,
    DRY_RUN,
    COMPACT,
    REINDEX,
    DELETE,
    SERVE,
    KEYS,
    QUARANTINE,
    USAGE,
    SLO,
    CANARY,
    RULES,
    CONFIGURE,
)
