"""The picture in docs/telemetry.md: `python -m tests.tensorboard.picture docs/images/tensorboard.png`.

Trains nothing: makes points of four ranks, provides them, starts TensorBoard and lets headless Chromium
(`chromium` on PATH) take the picture.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from ranklog.ingest.batch import ingest_batch
from ranklog.limits import HOUR_NS
from ranklog.model.record import Record as Delivered
from ranklog.store.disk import DiskStore
from ranklog.stream.frames import encode_frame
from tests.point_frames import STREAM, T0, Record, point_frame
from tests.tensorboard.processes import provided

RANKS, ITERATIONS = 4, 400


def _records() -> list[Record]:
    found = []
    for rank in range(RANKS):
        rng = random.Random(rank)
        stream = replace(STREAM, rank=rank, local_rank=rank, incarnation=str(rank))
        for step in range(ITERATIONS):
            at = T0 + step * 10**9
            loss = 1.8 + 8 / (1 + step / 20) + rng.gauss(0, 0.04)
            values = {"loss": loss, "learning_rate": 3e-4 * min(1, step / 40)}
            found.append(Record(values, {}, at, step, stream))
            for layer in range(2):
                norm = 0.4 + 2 / (1 + step / 50) + abs(rng.gauss(0, 0.05))
                spike = 9 * norm if rank == 3 and layer == 1 and step == 250 else norm
                found.append(
                    Record({"grad_norm": spike}, {"layer": f"h.{layer}"}, at, step, stream)
                )
    return found


def main(out: Path) -> None:
    """Write the PNG."""
    with tempfile.TemporaryDirectory() as folder:
        store = DiskStore(Path(folder) / "store")
        data = encode_frame(point_frame(_records(), number=1))
        record = Delivered(data, T0 + HOUR_NS, "1")
        ingest_batch([record], store=store, source="s", first="1", last="1")
        with provided(Path(folder) / "store", "llama") as page:
            out.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                [
                    *(
                        "chromium",
                        "--headless",
                        "--no-sandbox",
                        "--disable-gpu",
                        "--hide-scrollbars",
                    ),
                    *("--window-size=1280,900", "--virtual-time-budget=20000"),
                    *(f"--user-data-dir={folder}/profile", f"--screenshot={out.absolute()}"),
                    f"{page}/?darkMode=false#scalars",
                ],
                check=True,
                timeout=120,
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
