"""Where objects are: every key of a store, and what a key's name says.

    <tenant>/data/<YYYY-MM-DD>/<HH>/<source>.<first>.<last>.<hash>.parquet
    <tenant>/data/late/<arrival day>/<same name>
    <tenant>/index/<YYYY-MM-DD>/<HH>/<kind>.<min_ts>.<max_ts>.<source>.<first>.<last>.idx
    <tenant>/index/late/<arrival day>/<same name>
    <tenant>/arrivals/<YYYY-MM-DD>/<HH>/<YYYY-MM-DD>/<HH>/<name of an index>       zero bytes
    <tenant>/arrivals/<YYYY-MM-DD>/<HH>/late/<arrival day>/<name of an index>      zero bytes
    <tenant>/runs/<run>/<launch>/hours/<YYYY-MM-DDTHH>      zero bytes
    <tenant>/runs/<run>/<launch>/hours/late-<arrival day>   zero bytes
    <tenant>/runs/<run>/<launch>/imports/…
    <tenant>/runs/<run>/<launch>/manifests/<attempt>.<rank or host>.<hash>.json
    <tenant>/config/rules/<name>.json
    <tenant>/config/keys/<kind>/<id>.json
    <tenant>/config/access.json
    <tenant>/usage/<YYYY-MM-DDTHH>/<process>.json
    <tenant>/measures/<YYYY-MM-DDTHH>/<process>.json
    <tenant>/config/objectives.json
    <tenant>/pins/<pin>.json
    <tenant>/compaction/<folder>.json
    <tenant>/tombstones/<when_ns>.<hash>.json
    <tenant>/actions/<when_ns>.<hash>.json
    <tenant>/quarantine/<arrival day>/<source>.<sequence>[.json|.replayed.json]   tenant `_unknown` where
                                                                                  it can't be known
    <tenant>/waiting/<arrival day>/<arrival_ns>.<source>.<sequence>               frames over the quota
    _tmp/<tenant>/<id>

Names are percent-encoded, so that no name holds `/`, is `.` or `..`, or is empty; parts of an
index's name encode `.` too. Hours count from the epoch, in UTC. Pure.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from urllib.parse import quote, unquote

from ranklog.errors import BadInput, Corrupt
from ranklog.limits import DAY_NS, HOUR_NS, NAME_BYTES_MAX

UNKNOWN_TENANT = "_unknown"
TMP = "_tmp"
LATE = "late"
_EMPTY = "%"  # quote() never yields it
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


# --- names --------------------------------------------------------------------------------------
@lru_cache(maxsize=4_096)
def encode_name(name: str) -> str:
    """A name as one part of a key. Raises BadInput when it is longer than a file name may be."""
    text = quote(name, safe="", errors="surrogatepass") or _EMPTY
    if text[0] == ".":
        text = "%2E" + text[1:]
    if len(text) > NAME_BYTES_MAX:
        raise BadInput(
            f"the name {name[:40]}… is too long: {len(text)} bytes (percent-encoded)",
            hint=f"a name has at most {NAME_BYTES_MAX}",
        )
    return text


def decode_name(part: str) -> str:
    """The name that `encode_name` was given."""
    return "" if part == _EMPTY else unquote(part, errors="surrogatepass")


def _encode_dotless(name: str) -> str:
    return encode_name(name).replace(".", "%2E")


def tenant_prefix(tenant: str) -> str:
    """`<tenant>/`. A leading `_` is encoded: those names are ours."""
    part = encode_name(tenant)
    return ("%5F" + part[1:] if part[0] == "_" else part) + "/"


# --- hours --------------------------------------------------------------------------------------
def hour_of(ts_ns: int) -> int:
    """The event hour of a time."""
    return ts_ns // HOUR_NS


def hour_text(hour: int) -> str:
    """`2026-03-01T07`."""
    return (_EPOCH + timedelta(hours=hour)).strftime("%Y-%m-%dT%H")


@lru_cache(maxsize=4_096)  # names of hours come again with every LIST
def parse_hour(text: str) -> int:
    """Inverse of `hour_text`. Raises ValueError."""
    moment = datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=timezone.utc)
    return int((moment - _EPOCH).total_seconds()) // 3600


def day_text(ts_ns: int) -> str:
    """`2026-03-01`."""
    return (_EPOCH + timedelta(days=ts_ns // DAY_NS)).strftime("%Y-%m-%d")


def day_ns(text: str) -> int:
    """The first ns of a day as `day_text` writes it; 0 for what is none."""
    try:
        moment = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=timezone.utc)
    except ValueError:
        return 0
    return (moment - _EPOCH).days * DAY_NS


def _hour_folder(hour: int) -> str:
    return hour_text(hour).replace("T", "/") + "/"


# --- segments and indexes -----------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class IndexName:
    """What an index's name says. `max_ts` is inclusive."""

    kind: str
    min_ts: int
    max_ts: int
    source: str
    first: str
    last: str

    def render(self) -> str:
        parts = [_encode_dotless(p) for p in (self.kind, self.source, self.first, self.last)]
        return f"{parts[0]}.{self.min_ts:020d}.{self.max_ts:020d}.{'.'.join(parts[1:])}.idx"

    def overlaps(self, from_ns: int | None, to_ns: int | None) -> bool:
        """Whether a time of it can lie in [from_ns, to_ns)."""
        return (from_ns is None or self.max_ts >= from_ns) and (
            to_ns is None or self.min_ts < to_ns
        )


def parse_index_key(key: str) -> IndexName:
    """What the last part of an index's key says. Raises Corrupt."""
    parts = key.rpartition("/")[2].split(".")
    if len(parts) != 7 or parts[6] != "idx" or not (parts[1] + parts[2]).isdecimal():
        raise Corrupt(f"not the name of an index: {key}")
    kind, source, first, last = (decode_name(p) for p in (parts[0], *parts[3:6]))
    return IndexName(kind, int(parts[1]), int(parts[2]), source, first, last)


def data_prefix(tenant: str) -> str:
    """All segments of a tenant."""
    return f"{tenant_prefix(tenant)}data/"


def index_prefix(tenant: str) -> str:
    """All indexes of a tenant."""
    return f"{tenant_prefix(tenant)}index/"


def index_hour_prefix(tenant: str, hour: int) -> str:
    """The indexes of one event hour."""
    return index_prefix(tenant) + _hour_folder(hour)


def index_late_prefix(tenant: str, day: str | None = None) -> str:
    """The late indexes, of all arrival days or of one."""
    return f"{index_prefix(tenant)}{LATE}/" + (f"{day}/" if day else "")


def hour_of_index_prefix(prefix: str) -> int | None:
    """The hour of `…/index/<day>/<HH>/…`, None for a late one."""
    parts = prefix.split("/index/", 1)[1].split("/")
    return None if parts[0] == LATE else parse_hour(f"{parts[0]}T{parts[1]}")


def index_key(tenant: str, hour: int | None, name: IndexName, *, late_day: str = "") -> str:
    """Key of an index: of an event hour, or (`hour` None) a late one by arrival day."""
    folder = (
        index_late_prefix(tenant, late_day) if hour is None else index_hour_prefix(tenant, hour)
    )
    return folder + name.render()


def segment_key(
    tenant: str,
    hour: int | None,
    source: str,
    first: str,
    last: str,
    digest: str,
    *,
    late_day: str = "",
) -> str:
    """Key of a segment; `digest` is of its bytes."""
    folder = f"{LATE}/{late_day}/" if hour is None else _hour_folder(hour)
    names = ".".join(_encode_dotless(part) for part in (source, first, last, digest))
    return f"{tenant_prefix(tenant)}data/{folder}{names}.parquet"


# --- arrivals -----------------------------------------------------------------------------------
def arrivals_prefix(tenant: str, hour: int) -> str:
    """Pointers to the indexes of other hours that arrived in this one."""
    return f"{tenant_prefix(tenant)}arrivals/{_hour_folder(hour)}"


def arrival_key(tenant: str, hour: int, index: str) -> str:
    """Key of the pointer to an index, given by its key."""
    return arrivals_prefix(tenant, hour) + index.removeprefix(index_prefix(tenant))


def index_of_arrival(tenant: str, hour: int, key: str) -> str:
    """The index that a pointer names. Raises Corrupt."""
    prefix = arrivals_prefix(tenant, hour)
    if not key.startswith(prefix):
        raise Corrupt(f"not a pointer to an index: {key}")
    parse_index_key(key)
    return index_prefix(tenant) + key.removeprefix(prefix)


def hash_segment(data: bytes) -> str:
    """What the name of a segment, or a manifest's piece, ends in: blake2b-128 of its bytes, in hex."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def segment_is_named(data: bytes, key: str) -> bool:
    """Whether these are the bytes of the segment at this key."""
    return key.endswith(f".{hash_segment(data)}.parquet")


# --- runs ---------------------------------------------------------------------------------------
def runs_prefix(tenant: str) -> str:
    return f"{tenant_prefix(tenant)}runs/"


def run_prefix(tenant: str, run: str) -> str:
    """All launches of a run."""
    return f"{runs_prefix(tenant)}{encode_name(run)}/"


def launch_prefix(tenant: str, run: str, launch: str) -> str:
    return f"{run_prefix(tenant, run)}{encode_name(launch)}/"


def parse_launch_prefix(key: str) -> tuple[str, str]:
    """(run, launch) of a key `<tenant>/runs/<run>/<launch>/…`. Raises Corrupt."""
    parts = key.split("/")
    if len(parts) < 4 or parts[1] != "runs":
        raise Corrupt(f"not a key of a launch: {key}")
    return decode_name(parts[2]), decode_name(parts[3])


def hours_prefix(tenant: str, run: str, launch: str) -> str:
    """Markers of the hours in which a launch has lines."""
    return f"{launch_prefix(tenant, run, launch)}hours/"


def hour_marker_key(
    tenant: str, run: str, launch: str, hour: int | None, *, late_day: str = ""
) -> str:
    name = f"{LATE}-{late_day}" if hour is None else hour_text(hour)
    return hours_prefix(tenant, run, launch) + name


def parse_hour_marker(key: str) -> int | str:
    """The hour of a marker, or `late-<day>` as it stands. Raises Corrupt."""
    name = key.rpartition("/")[2]
    if name.startswith(f"{LATE}-"):
        return name
    try:
        return parse_hour(name)
    except ValueError as error:
        raise Corrupt(f"not an hour marker: {key}") from error


def imports_prefix(tenant: str, run: str, launch: str) -> str:
    """What an importer remembers of the files of a launch."""
    return f"{launch_prefix(tenant, run, launch)}imports/"


@dataclass(frozen=True, slots=True, order=True)
class ManifestName:
    """What the name of a piece of a manifest says. `rank` None: of a process without one, by host."""

    attempt: int
    rank: int | None
    host: str
    digest: str

    def render(self) -> str:
        who = str(self.rank)
        if self.rank is None:
            who = _encode_dotless(self.host)
            if len(who) > 100:  # a file's name holds 255 bytes
                who = "~" + hash_segment(self.host.encode("utf-8", "surrogatepass"))
            if who.isdecimal():  # a host named like a rank
                who = f"%{ord(who[0]):02X}{who[1:]}"
        return f"{self.attempt}.{who}.{self.digest}.json"


def manifests_prefix(tenant: str, run: str, launch: str) -> str:
    """Pieces of what the processes of a launch said of it."""
    return f"{launch_prefix(tenant, run, launch)}manifests/"


def manifest_key(tenant: str, run: str, launch: str, name: ManifestName) -> str:
    return manifests_prefix(tenant, run, launch) + name.render()


def parse_manifest_key(key: str) -> ManifestName:
    """What the last part of a piece's key says; `host` is "" where it names a rank, a hash
    where it is long. Raises Corrupt."""
    parts = key.rpartition("/")[2].split(".")
    if len(parts) != 4 or parts[3] != "json" or not parts[0].isdecimal():
        raise Corrupt(f"not the name of a piece of a manifest: {key}")
    attempt, who, digest, _ = parts
    if who.isdecimal():
        return ManifestName(int(attempt), int(who), "", digest)
    return ManifestName(int(attempt), None, decode_name(who), digest)


# --- the rest -----------------------------------------------------------------------------------
def rules_prefix(tenant: str) -> str:
    return f"{tenant_prefix(tenant)}config/rules/"


def rule_key(tenant: str, name: str) -> str:
    return f"{rules_prefix(tenant)}{encode_name(name)}.json"


def access_prefix(tenant: str, kind: str) -> str:
    """Records of a tenant's keys of a kind."""
    return f"{tenant_prefix(tenant)}config/keys/{encode_name(kind)}/"


def access_key(tenant: str, kind: str, key_id: str) -> str:
    return f"{access_prefix(tenant, kind)}{encode_name(key_id)}.json"


def usage_prefix(tenant: str, hour: int) -> str:
    """What each process counted for a tenant in an hour."""
    return f"{tenant_prefix(tenant)}usage/{hour_text(hour)}/"


def usage_key(tenant: str, hour: int, process: str) -> str:
    return f"{usage_prefix(tenant, hour)}{encode_name(process)}.json"


def measures_prefix(tenant: str) -> str:
    """What ranklog measured of itself for a tenant."""
    return f"{tenant_prefix(tenant)}measures/"


def measures_hour_prefix(tenant: str, hour: int) -> str:
    """The same of one hour."""
    return f"{measures_prefix(tenant)}{hour_text(hour)}/"


def measures_key(tenant: str, hour: int, process: str) -> str:
    return f"{measures_hour_prefix(tenant, hour)}{encode_name(process)}.json"


def objectives_key(tenant: str) -> str:
    """What a tenant's own objectives are."""
    return f"{tenant_prefix(tenant)}config/objectives.json"


def access_policy_key(tenant: str) -> str:
    """What a tenant's frames need, and its quotas."""
    return f"{tenant_prefix(tenant)}config/access.json"


def lease_key(tenant: str, folder: str) -> str:
    """Who compacts a folder of indexes."""
    return f"{tenant_prefix(tenant)}compaction/{encode_name(folder)}.json"


def tmp_prefix(tenant: str) -> str:
    """Results too large for an answer, and cursors of tails: apart from what is kept, since rules of
    a bucket's lifecycle know beginnings of keys alone."""
    return f"{TMP}/{tenant_prefix(tenant)}"


def tmp_key(tenant: str, name: str) -> str:
    """A lifecycle rule deletes it, and `ranklog serve --roles compact`."""
    return tmp_prefix(tenant) + encode_name(name)


def pins_prefix(tenant: str) -> str:
    """Pinned questions."""
    return f"{tenant_prefix(tenant)}pins/"


def pin_key(tenant: str, name: str) -> str:
    """What a pinned question looked at."""
    return f"{pins_prefix(tenant)}{encode_name(name)}.json"


def tombstones_prefix(tenant: str) -> str:
    """What was deleted."""
    return f"{tenant_prefix(tenant)}tombstones/"


def tombstone_key(tenant: str, when_ns: int, digest: str) -> str:
    """One deletion, by its time and the hash of its bytes."""
    return f"{tombstones_prefix(tenant)}{when_ns:020d}.{digest}.json"


def actions_prefix(tenant: str) -> str:
    """The log of what administrators did."""
    return f"{tenant_prefix(tenant)}actions/"


def action_key(tenant: str, when_ns: int, digest: str) -> str:
    """One entry of the log, by its time and the hash of its bytes."""
    return f"{actions_prefix(tenant)}{when_ns:020d}.{digest}.json"


def quarantine_prefix(tenant: str | None) -> str:
    return (
        f"{UNKNOWN_TENANT}/quarantine/" if tenant is None else f"{tenant_prefix(tenant)}quarantine/"
    )


def waiting_prefix(tenant: str) -> str:
    return f"{tenant_prefix(tenant)}waiting/"


def waiting_key(tenant: str, arrival_ns: int, source: str, sequence: str) -> str:
    """A frame that waits for its tenant's quota; names are in order of arrival."""
    name = f"{arrival_ns:020d}.{_encode_dotless(source)}.{_encode_dotless(sequence)}"
    return f"{waiting_prefix(tenant)}{day_text(arrival_ns)}/{name}"


def quarantine_key(tenant: str | None, day: str, source: str, sequence: str) -> str:
    name = f"{_encode_dotless(source)}.{_encode_dotless(sequence)}"
    return f"{quarantine_prefix(tenant)}{day}/{name}"


def hours_between(from_ns: int, to_ns: int) -> range:
    """Event hours that [from_ns, to_ns) touches."""
    return range(hour_of(from_ns), hour_of(to_ns - 1) + 1) if to_ns > from_ns else range(0)
