"""Administration over a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ranklog.access.meter import read_usage
from ranklog.access.policy import read_policy
from ranklog.admin.admin import Object
from ranklog.admin.quarantine import entries, entry, replay
from ranklog.answer.chain import VERIFIED
from ranklog.answer.render import completeness_json, report_json
from ranklog.client.deletion import delete, find_deletion
from ranklog.client.reader import Reader, local_reader
from ranklog.client.retention import apply_retention
from ranklog.client.usage import stored_usage
from ranklog.client.waiting import held_back_counts
from ranklog.client.words import Restrictions, read_query
from ranklog.delete.actions import Action, read_actions, record_action
from ranklog.delete.retention import Policy, load_policy, save_policy
from ranklog.errors import Forbidden
from ranklog.limits import HOUR_NS
from ranklog.store.protocol import Store

USAGE_HOURS = 24
_COUNTED = ("ingest_bytes", "stream_bytes", "parked", "scan_bytes", "requests", "refused")


class LocalAdmin:
    """See Admin. `audit_bytes_max`: of segments that one audit reads; `replay_max`: records that one
    replay stores; None: all there are. `elsewhere`: who else removes objects and stores frames, where this
    process may not; it then refuses to."""

    def __init__(
        self,
        store: Store,
        tenant: str,
        reader: Reader | None = None,
        *,
        audit_bytes_max: int | None = None,
        replay_max: int | None = None,
        elsewhere: str = "",
    ) -> None:
        self._store, self._tenant = store, tenant
        self._reader = reader or local_reader(store, tenant)
        self._audit_bytes_max, self._replay_max = audit_bytes_max, replay_max
        self._elsewhere = elsewhere

    # --- deletion -------------------------------------------------------------------------------
    def delete(
        self,
        query: str,
        given: Restrictions,
        *,
        who: str,
        why: str = "",
        groups: bool = False,
        dry_run: bool = False,
    ) -> Object:
        asked = read_query(query, given, now_ns=self._reader.now_ns())
        found = find_deletion(self._reader, asked, who=who, why=why, groups=groups)
        if not dry_run:
            found = delete(self._reader, found)
        return {
            "deleted": found.rows(),
            "lines": found.lines,
            "kind": found.tombstone.kind,
            "launches": [f"{run}@{launch}" for run, launch in found.tombstone.launches],
            "tombstone": found.key,
            "completeness": completeness_json(found.completeness),
            "report": report_json(found.report),
        }

    # --- audit ----------------------------------------------------------------------------------
    def audit(self, run: str | None = None, *, everything: bool = False) -> Object:
        from ranklog.client.audit import audit  # it reads Parquet

        selector = None
        if run is not None:
            selector = read_query("", {"run": run}, now_ns=self._reader.now_ns()).run
        found = audit(self._reader, selector, bytes_max=self._audit_bytes_max)
        waiting, aside = held_back_counts(self._store, self._tenant)
        shown = [fate for fate in found.frames if everything or fate.state != VERIFIED]
        return {
            "frames": [fate.to_json() for fate in shown],
            "segments": found.segments,
            "state": found.state,
            "totals": found.totals,
            "bytes_read": found.bytes_read,
            "waiting_frames": waiting,
            "quarantined_frames": aside,
        }

    def actions(self) -> Object:
        log = [action.to_json() for action in read_actions(self._store, self._tenant)]
        return {"actions": log}

    # --- usage ----------------------------------------------------------------------------------
    def usage(self, given: Restrictions) -> Object:
        if not {"run", "since", "until", "last"} & {name for name, v in given.items() if v}:
            given = {**given, "since": "1970-01-02"}  # of all time, where nothing else is said
        now_ns = self._reader.now_ns()
        stored = stored_usage(self._reader, read_query("", given, now_ns=now_ns))
        hour = now_ns // HOUR_NS
        counted: Counter[str] = Counter()
        hours = range(hour - USAGE_HOURS + 1, hour + 1)
        for counts in read_usage(self._store, self._tenant, hours).values():
            counted.update(counts)
        return {
            "runs": [usage.to_json(run_id) for run_id, usage in stored.runs.items()],
            "objects": stored.objects,
            "stored_bytes": stored.bytes_by_kind.total(),
            "stored_bytes_by_kind": dict(sorted(stored.bytes_by_kind.items())),
            "stored_bytes_by_day": dict(sorted(stored.bytes_by_day.items())),
            "last_24h": {name: counted[name] for name in _COUNTED},
            "waiting": {"frames": stored.waiting, "bytes": stored.bytes_by_kind["waiting"]},
            "quarantined_frames": stored.quarantined,
            "quotas": read_policy(self._store, self._tenant).to_json()["quotas"],
        }

    # --- retention ------------------------------------------------------------------------------
    def retention(self) -> Object:
        return _rules(load_policy(self._store, self._tenant))

    def set_retention(self, run: str, keep_ns: int | None, *, who: str, why: str = "") -> Object:
        policy = load_policy(self._store, self._tenant).with_rule(run, keep_ns)
        word = "retention.clear" if keep_ns is None else "retention.set"
        self._record(word, who, why, {"run": run, "keep_ns": keep_ns})
        save_policy(self._store, self._tenant, policy)
        return _rules(policy)

    def apply_retention(self, *, who: str, why: str = "", dry_run: bool = False) -> Object:
        if not dry_run:
            self._refuse_here()
        found = apply_retention(self._reader, who=who, why=why, dry_run=dry_run)
        return {**found.to_json(), "dry_run": dry_run}

    # --- quarantine -----------------------------------------------------------------------------
    def quarantine(self, *, unknown: bool = False) -> Object:
        return {"entries": entries(self._store, None if unknown else self._tenant)}

    def quarantined(self, entry_id: str, *, unknown: bool = False) -> Object:
        return entry(self._store, None if unknown else self._tenant, entry_id)

    def replay(self, ids: Sequence[str], *, who: str, unknown: bool = False) -> Object:
        self._refuse_here()
        self._record("quarantine.replay", who, "", {"ids": list(ids), "unknown": unknown})
        tenant = None if unknown else self._tenant
        return replay(self._store, tenant, ids, self._reader.now_ns(), self._replay_max)

    def _refuse_here(self) -> None:
        if self._elsewhere:
            raise Forbidden("not through this API", hint=self._elsewhere)

    def _record(self, word: str, who: str, why: str, details: Object) -> None:
        """The log has it before it is done."""
        action = Action(word, self._reader.now_ns(), who, why, details)
        record_action(self._store, self._tenant, action)


def _rules(policy: Policy) -> Object:
    return {"rules": [{"run": rule.run, "keep_ns": rule.keep_ns} for rule in policy.rules]}
