"""What is taken into a spool that is getting full: less and less, the least missed first."""

from __future__ import annotations

from dataclasses import dataclass

from ranklog.model.levels import INFO

# Parts of the quota from which on something is refused.
DEBUG_FROM, PROGRESS_FROM = 0.5, 0.6


@dataclass(slots=True)
class Admission:
    """Shared by all sources of an agent; `update` after every look at the spool's size."""

    level_min: int = 0
    refuses_progress: bool = False

    def update(self, used_bytes: int, quota_bytes: int) -> None:
        """Refuse what the fill of the spool tells to."""
        self.level_min = INFO if used_bytes > DEBUG_FROM * quota_bytes else 0
        self.refuses_progress = used_bytes > PROGRESS_FROM * quota_bytes
