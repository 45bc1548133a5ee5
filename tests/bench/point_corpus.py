"""Telemetry of a synthetic job: autoregressive values with six significant digits, as frames.

A series is (name, layer); the values of a layer are recorded in one call, each iteration, by each
rank. Shapes: `Corpus.values` float64[layers, names, ranks, iterations].
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranklog.agent.framer import FRAME_TARGET_BYTES
from ranklog.model.frame import STREAM_RANK
from ranklog.model.point import canonical_json
from ranklog.model.stream import Stream
from ranklog.stream.frames import encode_frame
from ranklog.stream.point_batch import PointBatch
from ranklog.stream.point_builder import PointBuilder

T0 = 1_772_323_200_000_000_000
NAMES = 50  # values of a call
STEP_NS = 500_000_000
_MEMORY, _NOISE, _SPREAD = 0.98, 0.05, 0.25


@dataclass(frozen=True, slots=True)
class Corpus:
    """Values and the times of the calls: ts int64[layers, ranks, iterations]."""

    names: tuple[str, ...]
    layers: tuple[str, ...]
    values: npt.NDArray[np.float64]
    ts: npt.NDArray[np.int64]

    @property
    def points(self) -> int:
        return self.values.size

    def frames(self) -> Iterator[bytes]:
        """In the order in which an agent would send them: by iteration, rank, layer."""
        _, _, ranks, iterations = self.values.shape
        streams = [
            Stream("default", "bench", "1", 0, f"node-{r // 8}", r, r % 8, "telemetry", "0")
            for r in range(ranks)
        ]
        sets = {
            at: (canonical_json({"layer": layer}), self.names)
            for at, layer in enumerate(self.layers)
        }
        layers, number = len(self.layers), 0
        builder = PointBuilder("default", "0a", 0, "")
        for iteration in range(iterations):
            for rank in range(ranks):
                for start in range(0, layers, 200):
                    stop = min(start + 200, layers)
                    batch = self._batch(sets, start, stop, rank, iteration)
                    builder.extend(streams[rank], iteration * layers + start, batch)
                    if builder.bytes >= FRAME_TARGET_BYTES:
                        yield encode_frame(builder.build())
                        number += 1
                        builder = PointBuilder("default", "0a", number, "")
        if builder.rows:
            yield encode_frame(builder.build())

    def _batch(
        self,
        sets: dict[int, tuple[str, tuple[str, ...]]],
        start: int,
        stop: int,
        rank: int,
        at: int,
    ) -> PointBatch:
        count = stop - start
        return PointBatch(
            ts=array("q", self.ts[start:stop, rank, at].tobytes()),
            rank=array("i", [STREAM_RANK]) * count,
            iteration=array("q", [at]) * count,
            set=range(start, stop),
            sets=sets,
            context=[0] * count,
            contexts={0: None},
            size=[len(self.names)] * count,
            values=array("d", np.ascontiguousarray(self.values[start:stop, :, rank, at]).tobytes()),
        )


def corpus(series: int, ranks: int, iterations: int, seed: int = 1) -> Corpus:
    """`series` is rounded up to whole layers."""
    rng = np.random.default_rng(seed)
    layers = -(-series // NAMES)
    shape = (layers, NAMES, ranks, iterations)
    level = 10.0 ** rng.uniform(-5, 3, (layers, NAMES, 1))
    values = np.empty(shape)
    state = rng.normal(size=shape[:3]) * _SPREAD
    for at in range(iterations):
        values[..., at] = six_digits(level * np.exp(state))
        state = _MEMORY * state + _NOISE * rng.normal(size=shape[:3])
    names = tuple(f"stats/{kind}_{i:02d}" for i, kind in enumerate(_kinds()))
    moments = (
        T0 + np.arange(iterations) * STEP_NS + rng.integers(0, STEP_NS // 10, (ranks, iterations))
    )
    gaps = np.cumsum(rng.integers(5_000, 60_000, (layers, ranks, iterations)), axis=0)
    ts = (moments[None, :, :] + gaps).astype(np.int64)
    return Corpus(names, tuple(f"h.{i}.mlp" for i in range(layers)), values, ts)


def six_digits(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The doubles that are printed with six significant digits."""
    scale = 5 - np.floor(np.log10(np.abs(values))).astype(np.int64)
    up = 10.0 ** np.clip(scale, 0, None)
    return np.rint(values * up) / up


def _kinds() -> list[str]:
    kinds = ("grad_norm", "grad_max", "weight_norm", "update_ratio", "activation_std")
    return [kinds[i % len(kinds)] for i in range(NAMES)]
