"""Every command: its words, and the module that does it, imported only when it runs."""

from __future__ import annotations

from dataclasses import dataclass

from ranklog.cli import flags
from ranklog.cli.flags import Flag, Positional


@dataclass(frozen=True, slots=True)
class Command:
    """`module` has `run(arguments, console) -> exit code`. `query`: unknown words are query text."""

    name: str
    summary: str
    module: str
    flags: tuple[Flag, ...] = ()
    words: tuple[Positional, ...] = ()
    query: bool = False
    example: str = ""


QUERY = Positional(
    "QUERY",
    'terms, all of which must hold: words, "strings", /regexes/, key:value; what is no option '
    "above is query text, even when it begins with -",
    many=True,
)
RUNS_QUERY = Positional(
    "QUERY",
    "terms on runs: state:failed owner:ada tags.team:nlp config.optimizer.lr>0.1 packages.torch:2.* "
    "git.dirty:1 world_size>=64; words are looked for in names, owner, tags and command",
    many=True,
)
SERIES_QUERY = Positional(
    "QUERY",
    "names of series, with * and ?, and key:value terms; loss OR grad_norm for two",
    many=True,
)
READING = flags.WHERE + flags.RESTRICTIONS
STORED = tuple(flag for flag in flags.WHERE if flag.name != "--api")

COMMANDS: tuple[Command, ...] = (
    Command(
        "demo",
        "trains a tiny job of several processes with a fault on one rank, and shows what went wrong",
        "ranklog.cli.demo",
        tuple(flag for flag in flags.WHERE if flag.name in ("--store", "--json")),
        example="ranklog demo --store ./demo-store",
    ),
    Command(
        "run",
        "runs a training command and captures its ranks; output, signals and exit code pass through",
        "ranklog.cli.run",
        flags.JOB,
        (Positional("CMD", "the command, after --", many=True),),
        example="ranklog run --run llama-8b -- torchrun --nproc-per-node 8 train.py",
    ),
    Command(
        "doctor",
        "says what would and wouldn't be captured here, of a command or in general, and what to do",
        "ranklog.cli.doctor",
        flags.DOCTOR + tuple(flag for flag in flags.WHERE if flag.name == "--json"),
        (Positional("CMD", "the command, after --", many=True),),
        example="ranklog doctor -- torchrun --nproc-per-node 8 train.py",
    ),
    Command(
        "import",
        "ingests existing log files, folders of per-rank files, or - for standard input",
        "ranklog.cli.imports",
        flags.WHERE + flags.IMPORT,
        (Positional("PATH", "file, folder or -; .gz and .zst are unpacked", many=True),),
        example="ranklog import logs/ --run llama-8b --rank-from 'rank_(\\d+)'",
    ),
    Command(
        "ingest",
        "ingests a local stream: what ranklog.init(destination=STREAM) writes",
        "ranklog.cli.ingest",
        tuple(flag for flag in flags.WHERE if flag.name in ("--store", "--json")) + flags.INGEST,
        (Positional("STREAM", "folder that producers have as destination"),),
        example="ranklog ingest ./stream --follow",
    ),
    Command(
        "search",
        "prints the lines that match a query, or counts them",
        "ranklog.cli.search",
        READING + flags.SEARCH + (flags.MUTE_COMMON,),
        (QUERY,),
        query=True,
        example="ranklog search 'level>=ERROR -call_site:trainer.py:88' --run llama-8b --rank 0-7",
    ),
    Command(
        "tail",
        "follows the lines that match a query as they become visible",
        "ranklog.cli.tail",
        READING + flags.TAIL + (flags.MUTE_COMMON,),
        (QUERY,),
        query=True,
        example="ranklog tail 'level>=WARNING' --run llama-8b",
    ),
    Command(
        "runs",
        "lists the runs, newest first; a query asks for what their manifests say",
        "ranklog.cli.runs",
        READING + flags.RUNS,
        (RUNS_QUERY,),
        query=True,
        example="ranklog runs 'owner:ada config.lr>0.1 git.dirty:1' --since 7d",
    ),
    Command(
        "streams",
        "lists the streams of a run: rank, host, channel, lines, and how complete they are",
        "ranklog.cli.streams",
        READING,
        example="ranklog streams --run llama-8b",
    ),
    Command(
        "callsites",
        "lists who logs how much: call sites and templates with counts, ranks and rates",
        "ranklog.cli.callsites",
        READING + flags.CALLSITES + (flags.MUTE_COMMON, flags.FULL_SCAN),
        (QUERY,),
        query=True,
        example="ranklog callsites --run llama-8b --uneven",
    ),
    Command(
        "patterns",
        "lists what is said: templates with counts, ranks, first and last time, an example",
        "ranklog.cli.patterns",
        READING + flags.PATTERNS + (flags.FULL_SCAN,),
        (QUERY,),
        query=True,
        example="ranklog patterns 'level>=WARNING' --run llama-8b --with ~1",
    ),
    Command(
        "compare",
        "sets ranks of a run, or two runs, side by side: insertions, deletions, changed values",
        "ranklog.cli.compare",
        READING + flags.COMPARE,
        (QUERY,),
        query=True,
        example="ranklog compare --run llama-8b --ranks 0,7",
    ),
    Command(
        "missing",
        "says who did not say it: ranks, hosts or streams without a line that matches, soundly",
        "ranklog.cli.missing",
        READING + flags.MISSING,
        (QUERY,),
        query=True,
        example="ranklog missing 'loaded checkpoint' --run llama-8b --by rank",
    ),
    Command(
        "outliers",
        "holds every rank against its peers: the odd ones, with the evidence and what they share",
        "ranklog.cli.outliers",
        READING + flags.OUTLIERS,
        (QUERY,),
        query=True,
        example="ranklog outliers --run llama-8b --png outliers.png",
    ),
    Command(
        "triage",
        "says what happened to a run: class of failure, suspects, timeline, next steps",
        "ranklog.cli.triage",
        READING + flags.TRIAGE,
        (QUERY,),
        query=True,
        example="ranklog triage --run llama-8b --html triage.html",
    ),
    Command(
        "watch",
        "watches a run that goes on: stalled, silent or lagging ranks, NaN, slower, errors; once each",
        "ranklog.cli.watch",
        READING + flags.WATCH,
        (QUERY,),
        query=True,
        example="ranklog watch --run llama-8b --webhook https://hooks.example.com/training",
    ),
    Command(
        "stacks",
        "groups the ranks of a run by where their stack dumps say they stand, the odd ones first",
        "ranklog.cli.stacks",
        READING + flags.STACKS,
        (QUERY,),
        query=True,
        example="ranklog stacks --run llama-8b",
    ),
    Command(
        "series",
        "prints telemetry: values of series by iteration, from points and from what rules read in lines",
        "ranklog.cli.series",
        READING
        + flags.SERIES
        + (Flag("--list", "one row per series: unit, points, smallest, largest and last value"),),
        (SERIES_QUERY,),
        query=True,
        example="ranklog series 'loss/* rank:0 layer:h.*' --run llama-8b",
    ),
    Command(
        "plot",
        "draws series in the terminal, or into a PNG: a panel per name, a line per rank and dimension",
        "ranklog.cli.plot",
        READING
        + flags.SERIES
        + (Flag("--out", "write a PNG there (pip install 'ranklog[plot]')", "FILE"),),
        (SERIES_QUERY,),
        query=True,
        example="ranklog plot 'loss OR grad_norm' --run llama-8b --by rank --out loss.png",
    ),
    Command(
        "tensorboard",
        "provides series to an unchanged TensorBoard, over gRPC on loopback",
        "ranklog.cli.tensorboard",
        (*READING, flags.PROVIDER_PORT),
        (SERIES_QUERY,),
        query=True,
        example="ranklog tensorboard --run llama-8b",
    ),
    Command(
        "export",
        "writes the lines that match a query to files",
        "ranklog.cli.export",
        READING + flags.EXPORT + (flags.FULL_SCAN,),
        (QUERY,),
        query=True,
        example="ranklog export 'rank:3' --run llama-8b --out rank3 --format jsonl",
    ),
    Command(
        "sql",
        "answers DuckDB SQL over the view lines, read-only",
        "ranklog.cli.sql",
        READING + flags.SQL,
        (Positional("SELECT", "the statement", many=True),),
        example="ranklog sql 'SELECT rank, count(*) FROM lines GROUP BY rank' --run llama-8b",
    ),
    Command(
        "compact",
        "merges small segments and indexes of closed hours, and deletes what they replaced, after a grace",
        "ranklog.cli.compact",
        STORED + flags.COMPACT + flags.DRY_RUN,
        example="ranklog compact --store ./logs --dry-run",
    ),
    Command(
        "reindex",
        "writes indexes from segments, where they were deleted or damaged",
        "ranklog.cli.reindex",
        STORED + flags.DRY_RUN + flags.REINDEX,
        example="ranklog reindex --store ./logs",
    ),
    Command(
        "delete",
        "deletes the lines that match a query, or a run whole: no answer shows them any more",
        "ranklog.cli.delete",
        READING + flags.DELETE + flags.BY_WHOM,
        (QUERY,),
        query=True,
        example="ranklog delete 'customer_id:4711' --run llama-8b --why 'request 93'",
    ),
    Command(
        "retention",
        "set SPAN, clear, show or apply: how long lines are kept, and letting go of what is older",
        "ranklog.cli.retention",
        flags.WHERE + flags.RETENTION + flags.BY_WHOM,
        (
            Positional("ACTION", "set, clear, show or apply"),
            Positional("SPAN", "how long, such as 90d or 36h; at least a day", many=True),
        ),
        example="ranklog retention set 90d --run 'llama-*' --store s3://logs",
    ),
    Command(
        "audit",
        "says of every frame whether it is stored as it was sent, deleted, dropped, missing or altered",
        "ranklog.cli.audit",
        flags.WHERE + flags.AUDIT,
        example="ranklog audit --run llama-8b --store s3://logs",
    ),
    Command(
        "agent",
        "sends what ranks of this host log, until none does; `agent status` tells what it does",
        "ranklog.cli.agent",
        tuple(flag for flag in flags.WHERE if flag.name == "--json") + flags.AGENT,
        (Positional("status", "what the agent does now: sources, what waits, errors", many=True),),
        example="ranklog agent --destination https://logs.example.com --host-logs auto",
    ),
    Command(
        "replay",
        "sends what a left-over spool holds, or puts what ingest on AWS gave up into the stream again",
        "ranklog.cli.replay",
        tuple(flag for flag in flags.WHERE if flag.name == "--json") + flags.REPLAY,
        (
            Positional(
                "DIR",
                "the spool: what $RANKLOG_SPOOL named; or s3://BUCKET, a stack's GivenUpUrl",
            ),
        ),
        example="ranklog replay /local/ranklog-1000 --destination kinesis://logs",
    ),
    Command(
        "serve",
        "serves the HTTP API of a store on this machine; with roles also ingests and compacts",
        "ranklog.cli.serve",
        flags.WHERE + flags.SERVE,
        example="ranklog serve --store ./logs",
    ),
    Command(
        "usage",
        "says what a tenant stores by run and day, sends and scans through the API, and sets quotas",
        "ranklog.cli.usage",
        flags.WHERE + flags.RESTRICTIONS + flags.USAGE,
        example="ranklog usage --store s3://logs --tenant acme --quota scan_bytes_per_hour=100000000000",
    ),
    Command(
        "slo",
        "reports ranklog's own objectives: freshness, completeness, durability, answers; 1: one is missed",
        "ranklog.cli.slo",
        (*flags.WHERE, *flags.SLO, flags.FORMAT),
        example="ranklog slo --since 7d --store s3://logs --tenant acme",
    ),
    Command(
        "canary",
        "writes numbered lines through the whole path and reads them back: none lost, none doubled, how late",
        "ranklog.cli.canary",
        (*flags.WHERE, *flags.CANARY, flags.FORMAT),
        example="ranklog canary --every 60 --api https://logs.example.com",
    ),
    Command(
        "quarantine",
        "list, show ID or replay [ID]: frames that could not be stored, why, and storing them after all",
        "ranklog.cli.quarantine",
        flags.WHERE + flags.QUARANTINE,
        (
            Positional("ACTION", "list, show or replay"),
            Positional("ID", "of records, as list shows it; replay without one: all", many=True),
        ),
        example="ranklog quarantine replay --store s3://logs --tenant acme",
    ),
    Command(
        "keys",
        "create, list, revoke ID, require on|off: keys of the API by scope, and keys that seal frames",
        "ranklog.cli.keys",
        tuple(flag for flag in flags.WHERE if flag.name != "--api") + flags.KEYS,
        (
            Positional("ACTION", "create, list, revoke or require"),
            Positional(
                "ID",
                "of the keys to revoke, as list shows it; with require: on or off, whether a frame that "
                "is not sealed goes to quarantine",
                many=True,
            ),
        ),
        example="ranklog keys create --scope read,write --expires 90d --name ci --store s3://logs",
    ),
    Command(
        "configure",
        "--stack NAME: keeps where a deployed stack is, so that commands need no --store and no --api",
        "ranklog.cli.configure",
        tuple(flag for flag in flags.WHERE if flag.name == "--json") + flags.CONFIGURE,
        example="ranklog configure --stack ranklog --region eu-central-1 --key-file key.txt",
    ),
    Command(
        "rules",
        "check FILE: validates parse-and-extract rules and shows what they extract",
        "ranklog.cli.rules",
        tuple(flag for flag in flags.WHERE if flag.name == "--json") + flags.RULES,
        (Positional("check", "the action"), Positional("FILE", "the rules, JSON")),
        example="ranklog rules check rules.json",
    ),
    Command(
        "version",
        "prints the version",
        "ranklog.cli.version",
        tuple(flag for flag in flags.WHERE if flag.name == "--json"),
    ),
)

BY_NAME = {command.name: command for command in COMMANDS}
