"""What rules make of sample lines: the report of `ranklog rules check FILE`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.layout.tokens_pure import template_of
from ranklog.rules.rule import Rule, validate
from ranklog.rules.ruleset import RuleSet


@dataclass(slots=True)
class CheckedLine:
    """One sample line: which rules matched, and what they extracted, as `type:key`."""

    text: str
    rules: list[str]
    values: dict[str, int | float | str]


@dataclass(slots=True)
class RuleReport:
    """Outcome of a check. `unused`: rules that no sample matches.

    `hidden`: rule -> number of the first sample that its pattern matches though its literals are
    not in it: the pre-filter hides such lines.
    """

    rules: int
    lines: list[CheckedLine] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    hidden: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        lines = [
            {"text": line.text, "rules": line.rules, "values": line.values} for line in self.lines
        ]
        return {
            "rules": self.rules,
            "lines": lines,
            "unused": self.unused,
            "hidden": self.hidden,
            "failed": self.failed,
        }


def check(rules: Sequence[Rule], sample_lines: Sequence[str] | None = None) -> RuleReport:
    """Try rules on lines, alone (no presets); without lines, on the rules' own examples.

    Raises BadRule for the first rule that is refused.
    """
    for rule in rules:
        validate(rule)
    lines = list(sample_lines) if sample_lines is not None else _examples(rules)
    report = RuleReport(len(rules), [CheckedLine(line, [], {}) for line in lines])
    if lines:
        _extract(rules, lines, report)
    matched = {name for line in report.lines for name in line.rules}
    report.unused = [rule.name for rule in rules if rule.name not in matched]
    return report


def _examples(rules: Sequence[Rule]) -> list[str]:
    return [line for rule in rules for line in rule.examples]


def _extract(rules: Sequence[Rule], lines: list[str], report: RuleReport) -> None:
    templates, tids = _templates(lines)
    text = pa.array(lines, pa.string())
    streams = np.zeros(len(lines), np.int32)
    # Scopes name runs and channels, which sample lines do not have.
    for rule in rules:
        alone = RuleSet([_unscoped(rule)]).evaluate(text, tids, templates, streams, ())
        report.failed |= alone.failed
        found = pc.extract_regex(text, rule.pattern)
        matches = set(np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False)).tolist())
        passed = {i for i in matches if all(literal in lines[i] for literal in rule.literals)}
        if matches - passed and not rule.ansi:
            report.hidden[rule.name] = min(matches - passed)
        for column in alone.columns:
            values = column.values.to_pylist() if column.type == "str" else column.values.tolist()
            for row, value in zip(column.rows.tolist(), values, strict=True):
                line = report.lines[row]
                line.values.setdefault(f"{column.type}:{column.key}", value)
                if rule.name not in line.rules:
                    line.rules.append(rule.name)


def _unscoped(rule: Rule) -> Rule:
    return replace(rule, run="*", channel="*", fallback=False)


def _templates(lines: list[str]) -> tuple[list[str], Any]:
    of_line = ["" if "\x00" in line else template_of(line) for line in lines]
    templates = ["", *sorted(set(of_line) - {""})]
    number = {template: i for i, template in enumerate(templates)}
    return templates, np.array([number[template] for template in of_line], np.int32)
