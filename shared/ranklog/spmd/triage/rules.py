"""What lines say of faults, as data: the words of frameworks, launchers, kernels and schedulers.

A rule holds where one of its literals is in the line and its expression is found in it. The union of
all literals is the query that fetches evidence, so that a rule costs nothing where nobody says its
words. `fault` is the class that it proves; rules without one are symptoms or belong to the launcher.
"""

from __future__ import annotations

from ranklog.spmd.triage.rules_collective import COLLECTIVE_RULES
from ranklog.spmd.triage.rules_device import DEVICE_RULES
from ranklog.spmd.triage.rules_launch import LAUNCHER_RULES, STATE_RULES
from ranklog.spmd.triage.rules_program import PROGRAM_RULES

CLASSES = (
    *("none", "oom_device", "oom_host", "collective_timeout", "collective_mismatch", "hardware"),
    *("network", "numeric", "data_loader", "storage", "import_or_config", "external_kill"),
    *("crash_signal", "hang", "slow", "unknown"),
)

RULES = (*DEVICE_RULES, *PROGRAM_RULES, *COLLECTIVE_RULES, *LAUNCHER_RULES, *STATE_RULES)
FAULT_OF = {rule.kind: rule.fault for rule in RULES if rule.fault}
