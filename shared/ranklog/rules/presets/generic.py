"""Loops that nobody has a preset for: `iteration 12`, and `step 12` beside a loss; loss, norms, rate.

`step` and `iter` count only on lines that speak of training, because installers have steps too.
"""

from __future__ import annotations

from ranklog.rules.presets.number import floats, ints, num
from ranklog.rules.rule import Rule

_SET = r"(?: *[=:] *| +)"
# A word of its own: `val loss` and `lm_loss` are not `loss`.
_ALONE = r"(?:^|[^A-Za-z0-9_/. -]|[^A-Za-z_/.] )\s*"
_TRAINING = r"(?:.*[^A-Za-z0-9])?(?i:loss|lr|norm|tokens?)(?:[^A-Za-z0-9]|$)"
# A count, with or without thousands commas.
_COUNT = r"(?P<iteration>\d{1,3}(?:,\d{3})+|\d+)"

RULES = (
    Rule(
        "generic_iteration",
        (),
        rf"(?:^|[^\w/.-])(?i:iteration|global[_ ]step){_SET}#?{_COUNT}(?:[^\w.]|\.?$|\. )",
        ints("iteration"),
        gate=rf"(?:^|[^\w/.-])(?i:iteration|global[_ ]step){_SET}#?\x00",
        fallback=True,
    ),
    Rule(
        "generic_step",
        (),
        rf"(?:^|[^\w/.-])(?i:step|iter){_SET}{_COUNT}(?:[^\w.]|\. ){_TRAINING}",
        ints("iteration"),
        gate=rf"(?:^|[^\w/.-])(?i:step|iter){_SET}\x00(?:[^\w.]|\. ){_TRAINING}",
        fallback=True,
    ),
    Rule(
        "generic_loss",
        (),
        rf"{_ALONE}(?i:loss){_SET}{num('loss')}",
        floats("loss"),
        gate=rf"{_ALONE}(?i:loss){_SET}(?:[-+.\x00]|(?i:nan|inf))",
        fallback=True,
    ),
    Rule(
        "generic_grad_norm",
        (),
        rf"(?:^|[^\w/.-])(?i:grad[_ ]norm){_SET}{num('grad_norm')}",
        floats("grad_norm"),
        gate=rf"(?:^|[^\w/.-])(?i:grad[_ ]norm){_SET}(?:[-+.\x00]|(?i:nan|inf))",
        fallback=True,
    ),
    Rule(
        "generic_step_time",
        (),
        rf"(?:^|[^\w/.-])(?:step|iter|iteration)[_ ]time{_SET}(?P<step_time_ms>[\d.]+ ?(?:ms|us|s)\b)",
        {"step_time_ms": "duration:ms"},
        gate=rf"(?:^|[^\w/.-])(?:step|iter|iteration)[_ ]time{_SET}\x00",
        fallback=True,
    ),
)
