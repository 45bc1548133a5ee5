"""`ranklog.mirror`: what a job tells its trackers arrives here too."""

from __future__ import annotations

import os
from pathlib import Path

from ranklog.mirrors.trackers import TRACKERS
from ranklog.produce import trouble


def mirror(*trackers: str) -> None:
    """Take part in calls to `"wandb"`, `"mlflow"`, `"tensorboard"` (torch's writer and tensorboardX's).

    Their numbers become points, with the name, project and link of the run over there as a line. The
    calls do what they did: their results and errors are unchanged, none of ours reaches the job. May
    be called before or after the trackers are imported; credentials that a tracker will miss are
    told now. Without a name, all that are known. Never raises.
    """
    for name in trackers or TRACKERS:
        if name not in TRACKERS:
            known = ", ".join(TRACKERS)
            trouble.once(f"mirror {name}", f"mirror({name!r}): known trackers are {known}")
            continue
        take_part, needs = TRACKERS[name]
        try:
            take_part()
            if trackers and (missing := needs(os.environ, Path.home())):
                trouble.once(f"credentials {name}", missing)
        except Exception:
            trouble.swallow(f"mirroring {name}")
