"""Parse-and-extract rules and presets: text to typed metadata, never at a line's cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranklog.rules.checks import check
    from ranklog.rules.load import load_rules
    from ranklog.rules.rule import Rule
    from ranklog.rules.ruleset import RuleSet
    from ranklog.rules.tenant import list_rules, load_ruleset, put_rules

__all__ = ["Rule", "RuleSet", "check", "list_rules", "load_rules", "load_ruleset", "put_rules"]

# No module here has the name of something it holds: importing it would hide that.
_HOMES = {
    "check": "checks",
    "load_rules": "load",
    "Rule": "rule",
    "RuleSet": "ruleset",
    "list_rules": "tenant",
    "load_ruleset": "tenant",
    "put_rules": "tenant",
}


def __getattr__(name: str) -> Any:
    # Line heads are wanted without Arrow; the rest loads on first use.
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(f"ranklog.rules.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
