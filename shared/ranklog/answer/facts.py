"""Whether a query's terms hold for a run: built-in fields, and flattened keys of its manifest. Pure.

A fact may have several values (a run has many ranks); a term holds if it does for any of them. As
everywhere, a comparison with what is absent is false, and Not is the exact complement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ranklog.answer.manifests import Scalar, flatten
from ranklog.errors import BadQuery
from ranklog.model import query as q
from ranklog.plan.tree import children
from ranklog.plan.values import COMPARE, Regexes, in_range

Facts = Mapping[str, Sequence[Scalar]]
# Fields that lines have and runs don't.
_OF_LINES = frozenset(
    ["level", "call_site", "template", "logger", "function", "group", "series", "time", "id"]
) | {"stream", "channel", "source", "copy", "superseded", "local_rank"}
_ALIASES = {"env": "environment", "dataset": "datasets", "tag": "tags", "package": "packages"}
# Members of a manifest whose keys are asked for with the member's name before them.
_MEMBERS = "config datasets tags git packages libraries imported environment container".split()


def run_facts(row: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, list[Scalar]]:
    """Everything that can be asked of a run."""
    facts: dict[str, list[Scalar]] = {
        "run": [row["run"]],
        "run_id": [row["run_id"]],
        "state": [row["state"]],
        "attempt": [item["attempt"] for item in row["attempts"]],
        "rank": list(row["ranks"]),
        "host": list(row["hosts"]),
        "lines": [row["lines"]],
    }
    codes = [item["exit_code"] for item in row["attempts"]]
    single = {
        "iteration": row["last_iteration"],
        "world_size": row["world_size"],
        "owner": row["owner"],
        "exit_code": next((code for code in reversed(codes) if code is not None), None),
        "command": _command(manifest),
        "cwd": manifest.get("cwd"),
        "python": manifest.get("python"),
    }
    facts |= {key: [value] for key, value in single.items() if value is not None}
    for member in _MEMBERS:
        for key, value in flatten(manifest.get(member, {})).items():
            if value is not None:
                facts[f"{member}.{key}"] = [value]
    for key, value in flatten(row["topology"]).items():
        if value is not None:
            facts[f"topology.{key}"] = [value]
    names = [str(file.get("path", "")).rpartition("/")[2] for file in manifest.get("files", ())]
    if names:
        facts["file"] = list(names)
    _add_hosts(facts, manifest.get("hosts", {}))
    return facts


def _command(manifest: Mapping[str, Any]) -> str | None:
    """The launcher's words and the rank's own."""
    words = [*manifest.get("launch_command", ()), *manifest.get("command", ())]
    return " ".join(map(str, words)) or None


def _add_hosts(facts: dict[str, list[Scalar]], hosts: Mapping[str, Mapping[str, Any]]) -> None:
    """`drivers.nvidia`, `machine.kernel`, `accelerator`: one value per host."""
    for said in hosts.values():
        for member in ("drivers", "machine", "container"):
            for key, value in flatten(said.get(member, {})).items():
                if value is not None:
                    facts.setdefault(f"{member}.{key}", []).append(value)
        for gpu in said.get("accelerators", ()):
            facts.setdefault("accelerator", []).append(str(gpu.get("name")))


def facts_hold(expr: q.Expr, facts: Facts, regexes: Regexes) -> bool:
    """Whether the run of these facts fulfils the query. Raises BadQuery for terms on lines."""
    if isinstance(expr, q.Everything):
        return True
    if isinstance(expr, q.And):
        return all(facts_hold(item, facts, regexes) for item in expr.items)
    if isinstance(expr, q.Or):
        return any(facts_hold(item, facts, regexes) for item in expr.items)
    if isinstance(expr, q.Not):
        return not facts_hold(expr.item, facts, regexes)
    if isinstance(expr, q.Contains):
        return any(expr.literal in text for text in _texts(facts))
    if isinstance(expr, q.Matches):
        return any(regexes(expr.pattern, expr.flags, _texts(facts)))
    if isinstance(expr, q.Field):
        return _field_holds(expr, facts, regexes)
    raise BadQuery("near() and spike() look at lines, a run is none", hint="use `ranklog search`")


def check_terms(expr: q.Expr) -> None:
    """Raises BadQuery for what can be asked of lines only, before anything is read."""
    if isinstance(expr, q.Field) and expr.key in _OF_LINES:
        raise BadQuery(
            f"runs have no {expr.key}, lines have",
            hint="ask for keys of the manifest: owner:ada config.lr>0.1 git.dirty:1",
        )
    if isinstance(expr, (q.Near, q.NearSet, q.Spike)):
        facts_hold(expr, {}, lambda pattern, flags, texts: [])
    for item in children(expr):
        check_terms(item)


def unknown_keys(expr: q.Expr, all_facts: Iterable[Facts]) -> list[str]:
    """Keys of the query that no run has: no error, but often a slip."""
    asked = {_spelled(term.key) for term in _fields(expr)}
    known = {key for facts in all_facts for key in facts}
    return sorted(
        key
        for key in asked
        if key not in q.BUILTIN_FIELDS
        and key not in known
        and not any(name.startswith(f"{key}.") for name in known)
    )


def _fields(expr: q.Expr) -> Iterable[q.Field]:
    if isinstance(expr, q.Field):
        yield expr
    for item in children(expr):
        yield from _fields(item)


def _texts(facts: Facts) -> list[str]:
    """What a word is looked for in: names, owner, tags, command."""
    plain = ("run_id", "owner", "command", "host", "state", "file")
    names = [key.partition(".")[2] for key in facts if key.startswith(("tags.", "datasets."))]
    tags = [str(v) for key, values in facts.items() if key.startswith("tags.") for v in values]
    return [str(v) for key in plain for v in facts.get(key, ())] + names + tags


def _spelled(key: str) -> str:
    head, dot, rest = key.partition(".")
    return f"{_ALIASES.get(head, head)}{dot}{rest}"


def _field_holds(field: q.Field, facts: Facts, regexes: Regexes) -> bool:
    key = _spelled(field.key)
    values = facts.get(key, ())
    if not values:
        nested = any(name.startswith(f"{key}.") for name in facts)
        wanted = q.Present if nested else q.Null
        return field.op == ":" and any(isinstance(value, wanted) for value in field.values)
    if field.op == "!=":
        return not any(_holds(":", want, has, regexes) for want in field.values for has in values)
    return any(_holds(field.op, want, has, regexes) for want in field.values for has in values)


def _holds(op: str, wanted: q.Value, value: Scalar, regexes: Regexes) -> bool:
    if isinstance(wanted, q.Present):
        return True
    if isinstance(wanted, q.Null):
        return False
    if isinstance(value, bool) and isinstance(wanted, q.Exact):
        return op == ":" and wanted.text.lower() == str(value).lower()
    if isinstance(value, (int, float)):
        if isinstance(wanted, q.Number):
            return COMPARE[op](value, wanted.value)
        return isinstance(wanted, q.Range) and in_range(op, wanted, value)
    number = _number(value)
    if number is not None and isinstance(wanted, (q.Number, q.Range)):
        return _holds(op, wanted, number, regexes)
    if isinstance(wanted, (q.Exact, q.Number)):
        text = wanted.text if isinstance(wanted, q.Exact) else wanted.source
        return COMPARE[op](value, text)
    if isinstance(wanted, q.Glob):
        return regexes(wanted.pattern, "", [value])[0]
    if isinstance(wanted, q.RegexValue):
        return regexes(wanted.pattern, wanted.flags, [value])[0]
    return False


def _number(text: str) -> float | None:
    """What a text says as a number: YAML reads `1e-5` as text."""
    try:
        return float(text)
    except ValueError:
        return None
