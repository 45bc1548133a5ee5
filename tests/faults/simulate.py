"""Make a job from a seed: `simulate(seed)`, or `python -m tests.faults.simulate --seed N --out DIR`.

The same seed and arguments give the same bytes. What is not asked for is drawn: fault, framework,
layout, number of ranks, topology, and everything in the stories.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.faults import stories_death, stories_state, stories_waiting
from tests.faults.frameworks import FRAMEWORKS, PER_RANK
from tests.faults.job import LAYOUTS, Job, finish_job
from tests.faults.topology import make_topology
from tests.faults.truth import Truth
from tests.faults.world import Scene, World

RANKS_MIN, RANKS_MAX = 4, 4096
_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
_SHARES = (0.34, 0.22, 0.16, 0.13, 0.08, 0.04, 0.02, 0.01)
_HEALTHY_SHARE = 0.2
_SALT = 0x0FA175


@dataclass(frozen=True, slots=True)
class Story:
    """`needs`: nodes it takes; `each`: every rank has to log iterations; `nccl`: not over gloo.

    `bare`: its text says itself which rank it is of, or is the same on all: a console without any
    labels is enough.
    """

    tell: Callable[[World], Truth]
    needs: int = 1
    each: bool = False
    nccl: bool = False
    bare: bool = True


STORIES: dict[str, Story] = {
    "oom_rank": Story(stories_death.oom_rank),
    "oom_all": Story(stories_death.oom_all),
    "oom_killer_rank": Story(stories_death.oom_killer_rank),
    "sigkill_rank": Story(stories_death.sigkill_rank),
    "segfault_rank": Story(stories_death.segfault_rank, bare=False),
    "segfault_all": Story(stories_death.segfault_all),
    "exception_rank": Story(stories_death.exception_rank),
    "data_loader_death": Story(stories_death.data_loader_death),
    "missing_file_all": Story(stories_death.missing_file_all),
    "import_error_all": Story(stories_death.import_error_all),
    "xid_host": Story(stories_death.xid_host),
    "ecc_rank": Story(stories_death.ecc_rank),
    "node_lost": Story(stories_death.node_lost, needs=2, bare=False),
    "skipped_collective": Story(stories_waiting.skipped_collective),
    "other_collective": Story(stories_waiting.other_collective),
    "timeout_everywhere": Story(stories_waiting.timeout_everywhere, nccl=True),
    "hang_timeout": Story(stories_waiting.hang_timeout),
    "hang_silent": Story(stories_waiting.hang_silent, bare=False),
    "slow_rank": Story(stories_waiting.slow_rank, bare=False),
    "slow_node": Story(stories_waiting.slow_node, needs=2, bare=False),
    "nan_rank": Story(stories_state.nan_rank),
    "nan_replica": Story(stories_state.nan_replica, each=True, bare=False),
    "loss_spike": Story(stories_state.loss_spike),
    "checkpoint_stuck": Story(stories_state.checkpoint_stuck, bare=False),
    "checkpoint_error": Story(stories_state.checkpoint_error),
    "disk_full_node": Story(stories_state.disk_full_node, needs=2),
    "link_flap": Story(stories_state.link_flap, needs=2, nccl=True),
    "sigterm_outside": Story(stories_state.sigterm_outside),
    "time_limit": Story(stories_state.time_limit),
    "preemption": Story(stories_state.preemption),
    "healthy": Story(stories_state.healthy),
}
FAULTS = tuple(name for name in STORIES if name != "healthy")
_OWN_LOSS = ("plain", "deepspeed", "sdk")  # whose lines show a rank's own loss
_TORCH = ("2.8", "2.8", "2.5", "2.2")  # 1.13 tags no traceback with its rank


def simulate(
    seed: int,
    *,
    ranks: int | None = None,
    fault: str | None = None,
    framework: str | None = None,
    layout: str | None = None,
) -> Job:
    """A job; ValueError for a name or a size that is none."""
    _check(ranks, fault, framework, layout)
    rng = np.random.default_rng([seed, _SALT])
    shown = [name for name in FAULTS if _why_not(name, framework, layout) is None]
    drawn = "healthy" if rng.random() < _HEALTHY_SHARE else shown[int(rng.integers(len(shown)))]
    fault = fault or drawn
    story = STORIES[fault]
    size = int(rng.choice(_SIZES, p=_SHARES))
    nodes_min = max(story.needs, 3 if story.needs > 1 and rng.random() < 0.8 else 1)
    if ranks is None:
        ranks = max(size, 16 if story.needs > 1 else 8)
    topo = make_topology(rng, ranks, min(nodes_min, ranks))
    scene = _draw_scene(rng, fault, framework, layout)
    w = World(rng, topo, scene)
    return finish_job(seed, w, story.tell(w))


def _check(ranks: int | None, fault: str | None, framework: str | None, layout: str | None) -> None:
    if ranks is not None and not RANKS_MIN <= ranks <= RANKS_MAX:
        raise ValueError(f"{ranks} ranks: {RANKS_MIN} to {RANKS_MAX}")
    for name, known in ((fault, STORIES), (framework, FRAMEWORKS), (layout, LAYOUTS)):
        if name is not None and name not in known:
            raise ValueError(f"no {name!r} among {', '.join(known)}")
    if fault and (why := _why_not(fault, framework, layout)):
        raise ValueError(why)
    if "sdk" in (framework, layout) and not {framework, layout} <= {"sdk", None}:
        raise ValueError("the sdk is a framework and a layout: give both or one")


def _why_not(fault: str, framework: str | None, layout: str | None) -> str | None:
    """Why no text of these would show whose fault it is; None where it would."""
    if layout == "bare" and not STORIES[fault].bare:
        return f"a console without labels does not show whose fault {fault!r} is"
    if STORIES[fault].each and framework not in (*_OWN_LOSS, None):
        return f"{framework} does not print each rank's loss, which shows {fault!r}"
    return None


def _draw_scene(
    rng: np.random.Generator, fault: str, framework: str | None, layout: str | None
) -> Scene:
    story = STORIES[fault]
    options = ["plain", "plain", "titan", "megatron", "deepspeed", "nemo", "hf"]
    options += ["mxnet"] if fault in ("healthy", "time_limit", "missing_file_all") else []
    if story.each:
        options = list(_OWN_LOSS[:2])
    layouts = ["rank_files", "torchrun_dir", "tee", "srun", "bare" if story.bare else "tee"]
    if framework is None:
        if layout is None:
            layout = [*layouts, "sdk"][int(rng.choice(6, p=(0.18, 0.18, 0.22, 0.22, 0.1, 0.1)))]
        framework = "sdk" if layout == "sdk" else options[int(rng.integers(len(options)))]
    if layout is None:
        layout = "sdk" if framework == "sdk" else layouts[int(rng.integers(5))]
    sees_slow = fault in ("slow_rank", "slow_node")
    per_rank = story.each or bool(rng.random() < PER_RANK.get(framework, 0.0))
    per_rank |= sees_slow and PER_RANK.get(framework, 0.0) > 0 and bool(rng.random() < 0.9)
    torchrun = layout in ("tee", "torchrun_dir", "bare") or (
        layout != "srun" and bool(rng.random() < 0.6)
    )
    per_rank &= not (layout == "bare" and fault == "nan_rank")
    gloo = framework == "plain" and not story.nccl and bool(rng.random() < 0.35)
    return Scene(
        fault=fault,
        framework=framework,
        layout=layout,
        per_rank=per_rank,
        torchrun=torchrun,
        gloo=gloo,
        flight_recorder=bool(rng.random() < 0.4),
        kernel_logs=bool(rng.random() < (1.0 if fault == "xid_host" else 0.35)),
        timeout_s=int(rng.choice([600, 600, 1800, 120])),
        nccl_info=fault == "link_flap" or bool(rng.random() < 0.2),
        torch=str(rng.choice(_TORCH if layout in ("bare", "tee") else [*_TORCH, "1.13"])),
        script=str(
            rng.choice(
                ["/srv/train/train_ddp.py", "/workspace/pretrain_gpt.py", "/home/ml/run/main.py"]
            )
        ),
        python=str(rng.choice(["/opt/venv/bin/python", "/usr/bin/python3"])),
    )


def main(arguments: list[str] | None = None) -> int:
    """Write one job's files into a folder, its truth beside the folder."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.simulate", description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder for the log files")
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--fault", choices=sorted(STORIES))
    parser.add_argument("--framework", choices=sorted(FRAMEWORKS))
    parser.add_argument("--layout", choices=LAYOUTS)
    given = vars(parser.parse_args(arguments))
    out: Path = given.pop("out")
    job = simulate(given.pop("seed"), **given)
    paths = job.write(out)
    truth = out.with_name(out.name + ".truth.json")
    truth.write_text(json.dumps(job.truth.as_dict(), indent=1) + "\n")
    print(
        f"{len(paths)} files in {out}, {sum(p.stat().st_size for p in paths)} bytes; truth in {truth}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
