"""Rules from JSON: `{"version": 1, "rules": [{"name", "literals", "pattern", …}, …]}`.

A refusal says which rule, why, and where: `BadRule.position` counts characters of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ranklog.errors import BadRule, NewerVersion
from ranklog.limits import RULE_FILE_BYTES_MAX, RULES_PER_TENANT_MAX
from ranklog.rules.rule import Pairs, Rule, validate

VERSION = 1
_TEXT, _FLAG, _LIST, _MAP = "a string", "true or false", "a list of strings", "an object of strings"
MEMBERS: Mapping[str, str] = {
    "name": _TEXT,
    "literals": _LIST,
    "pattern": _TEXT,
    "types": _MAP,
    "pairs": "an object",
    "gate": _TEXT,
    "ansi": _FLAG,
    "fallback": _FLAG,
    "run": _TEXT,
    "channel": _TEXT,
    "examples": _LIST,
}
PAIR_MEMBERS: Mapping[str, str] = {
    "style": _TEXT,
    "group": _TEXT,
    "marker": _TEXT,
    "names": _MAP,
    "types": _MAP,
    "drop": _LIST,
    "suffix": _TEXT,
}
_ELEMENT = re.compile(r"[\s,]*")


def load_rules(source: str | Path | bytes) -> tuple[Rule, ...]:
    """Validated rules of a file (a path) or of its bytes. Raises BadRule, NewerVersion."""
    data = source if isinstance(source, bytes) else _read(Path(source))
    if len(data) > RULE_FILE_BYTES_MAX:
        raise BadRule(f"a rules file of {len(data)} bytes; at most {RULE_FILE_BYTES_MAX}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRule(
            f"the rules are no UTF-8 at byte {error.start}", position=error.start
        ) from error
    rules = tuple(_rule(element, start, text) for element, start in _elements(text))
    if len(rules) > RULES_PER_TENANT_MAX:
        raise BadRule(f"{len(rules)} rules; at most {RULES_PER_TENANT_MAX}")
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise BadRule(f"two rules are named {name}", hint="rename one")
    return rules


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadRule(f"can't read rules from {path}: {error.strerror}") from error


def _elements(text: str) -> Iterator[tuple[Any, int]]:
    """Members of the list `rules`, each with the position where it begins."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRule(
            f"no JSON at line {error.lineno}, column {error.colno}: {error.msg.lower()}",
            position=error.pos,
        ) from error
    except RecursionError as error:
        raise BadRule("the rules are nested too deep") from error
    if not isinstance(document, dict) or not isinstance(document.get("rules"), list):
        raise BadRule('a rules file is {"version": 1, "rules": [...]}', position=0)
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise BadRule('the rules file has no "version"', hint=f'write "version": {VERSION}')
    if version > VERSION:
        raise NewerVersion(f"rules of version {version}; this ranklog reads {VERSION}")
    unknown = sorted(set(document) - {"version", "rules"})
    if unknown:
        raise BadRule(f"unknown member {unknown[0]!r} of the rules file")
    decoder = json.JSONDecoder()
    found = re.search(r'"rules"\s*:\s*\[', text)
    at = found.end() if found else 0
    for element in document["rules"]:
        skipped = _ELEMENT.match(text, at)
        start = skipped.end() if skipped else at
        try:
            _, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            start = at = 0  # "rules" is written twice or escaped: no position then
        yield element, start


def _rule(element: Any, start: int, text: str) -> Rule:
    where = f"at line {text.count(chr(10), 0, start) + 1}"
    try:
        members = _members(element, MEMBERS, "rule")
        if "pairs" in members:
            pairs = _members(members["pairs"], PAIR_MEMBERS, "pairs")
            pairs["drop"] = frozenset(pairs.get("drop", ()))
            members["pairs"] = Pairs(**pairs)
        for name in ("name", "pattern"):
            if name not in members:
                raise BadRule(f"a rule without {name!r}")
        for name in ("literals", "examples"):
            members[name] = tuple(members.get(name, ()))
        rule = Rule(**members)
        validate(rule)
    except BadRule as error:
        position = start
        if error.position is not None and isinstance(element, dict):
            position = _position(text, start, element.get("pattern"), error.position)
        raise BadRule(f"{error.message} ({where})", hint=error.hint, position=position) from error
    return rule


def _members(element: Any, kinds: Mapping[str, str], what: str) -> dict[str, Any]:
    if not isinstance(element, dict):
        raise BadRule(f"{what} is no JSON object")
    for name, value in element.items():
        if name not in kinds:
            raise BadRule(f"unknown member {name!r} of a {what}", hint=", ".join(kinds))
        if not _is_kind(value, kinds[name]):
            raise BadRule(f"{name!r} must be {kinds[name]}")
    return dict(element)


def _is_kind(value: Any, kind: str) -> bool:
    if kind == _TEXT:
        return isinstance(value, str)
    if kind == _FLAG:
        return isinstance(value, bool)
    if kind == _LIST:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind == _MAP:
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return isinstance(value, dict)


def _position(text: str, start: int, pattern: Any, offset: int) -> int:
    """Where character `offset` of a pattern stands in the file, past JSON's escapes."""
    found = re.compile(r'"pattern"\s*:\s*"').search(text, start)
    if not isinstance(pattern, str) or found is None:
        return start
    at = found.end()
    for _ in range(offset):
        at += 6 if text.startswith("\\u", at) else 2 if text.startswith("\\", at) else 1
    return at
