"""`ranklog.tensor`: the summary of a tensor as a point, computed where the tensor lives.

Of a tensor in the host's memory the summary is there at once. Of one on a device it is computed by the
stream that is current, behind the work that made the tensor, and nobody waits for it: a thread of ours
looks until the device has come so far, then fetches one vector of some twenty numbers through a stream of
its own. What is said (time, iteration, context) is that of the call.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ranklog.produce import output, summaries, trouble
from ranklog.produce.context import current_iteration
from ranklog.produce.producer import Moment, Producer
from ranklog.produce.telemetry import attached, settlers
from ranklog.produce.values import clean_metadata

# Which iterations are taken where neither `every` nor $RANKLOG_TENSOR_EVERY says.
EVERY = 10
# Numbers of a vector -> values by name.
Words = Callable[[Sequence[float]], dict[str, Any]]
# Summaries that a device still owes; more than these are dropped, and counted.
OWED_MAX = 4096
_LOOK_S = 0.002


def _every() -> int:
    said = os.environ.get("RANKLOG_TENSOR_EVERY", "")
    return int(said) if said.isdecimal() and int(said) else EVERY


def tensor(
    name: str,
    value: Any,
    /,
    *,
    every: int | None = None,
    quantiles: Sequence[float] = summaries.QUANTILES,
    histogram: int = 0,
    **dims: Any,
) -> None:
    """Count, min, max, mean, std, norm, quantiles, NaN and Inf of a torch tensor or numpy array.

    `tensor("activations", t, module="h.3.mlp")`: a point of the series `activations`; keywords are
    dimensions. Taken in iterations divisible by `every` (`$RANKLOG_TENSOR_EVERY`, else 10), always
    where there is no iteration. `quantiles` (each in 0..1) are a sample's; `histogram` is a
    number of bins, at most 512. Of a DTensor, the local part. Never waits for a device, never raises.
    """
    try:
        producer = attached()
        if producer is None or not due(every):
            return
        if not 0 <= histogram <= summaries.BINS_MAX or not all(0 <= q <= 1 for q in quantiles):
            raise ValueError("quantiles lie in 0..1, and a histogram has at most 512 bins")
        wanted = (tuple(quantiles), int(histogram))
        plain = clean_metadata(dims) if dims else None
        write_summary(producer, str(name), value, wanted, plain)
    except Exception:
        trouble.swallow("summing up a tensor")


# torch.compile leaves it out of what it compiles; this is what its `disable` sets.
tensor._torchdynamo_disable = True  # type: ignore[attr-defined]


def due(every: int | None = None) -> bool:
    """Whether this iteration is one that is taken."""
    number = current_iteration()
    return number is None or number % max(every or _usual, 1) == 0


def write_summary(
    producer: Producer,
    name: str,
    value: Any,
    wanted: Any,
    dims: Any,
    moment: Moment | None = None,
) -> None:
    """The summary of a tensor or array as a point of a moment (None: this one), written now or once its
    device has computed it.
    `wanted` are quantiles and bins. What has no summary is told once."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.to_local() if hasattr(value, "to_local") else value
        if not _can_be_read(torch, value):
            return
        with torch.no_grad():
            vector = summaries.vector_of(torch, value, *wanted)
        if value.device.type != "cpu":
            words = summary_words(name, wanted)
            owed.add(Owed(producer, moment or producer.moment(), words, dims, vector), torch)
            return
    elif numpy is not None and isinstance(value, numpy.ndarray):
        if value.dtype.kind not in "biufc":
            trouble.once("tensor-kind", f"an array of {value.dtype} has no summary; left out")
            return
        vector = summaries.numpy_vector(numpy, value, *wanted)
    else:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        trouble.once(
            "tensor-kind", f"tensor() takes torch tensors and numpy arrays, not {kind}; left out"
        )
        return
    producer.telemetry(summary_words(name, wanted)(vector.tolist()), dims, moment)


def summary_words(name: str, wanted: Any) -> Words:
    """How a vector becomes the values of a point; `wanted` are quantiles and bins."""
    return lambda numbers: {name: summaries.summary_of(numbers, *wanted)}


def _can_be_read(torch: Any, value: Any) -> bool:
    reason = ""
    if value.layout is not torch.strided:
        reason = f"a tensor of layout {value.layout}"
    elif value.is_quantized:
        reason = "a quantized tensor"
    elif value.device.type == "meta":
        reason = "a tensor without values (meta)"
    elif value.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        reason = "a tensor inside the capture of a graph"
    if reason:
        trouble.once(f"tensor-{reason}", f"{reason} has no summary; left out")
    return not reason


class Owed:
    """Numbers that a device still computes, and how they become values."""

    __slots__ = ("dims", "moment", "producer", "vector", "words")

    def __init__(
        self, producer: Producer, moment: Moment, words: Words, dims: Any, vector: Any
    ) -> None:
        self.producer = producer
        self.moment = moment
        self.words = words
        self.dims = dims
        self.vector = vector

    def write(self, numbers: Sequence[float]) -> None:
        """As a point of the moment when it was asked for."""
        self.producer.telemetry(self.words(numbers), self.dims, self.moment)


class Deliveries:
    """Summaries on their way from devices, in order, by one thread that starts with the first."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Owed, Callable[[], bool], Callable[[], Sequence[float]]]] = (
            deque()
        )
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._side: dict[Any, Any] = {}

    def add(self, one: Owed, torch: Any) -> None:
        """Take it on; `OWED_MAX` are waiting at most, more are dropped."""
        module: Any = getattr(torch, one.vector.device.type, None)
        ready, fetch = _always, one.vector.tolist
        if all(hasattr(module, name) for name in ("Event", "Stream", "stream", "current_stream")):
            event = module.Event()
            event.record(module.current_stream(one.vector.device))
            ready = event.query

            def fetch() -> Any:
                return self._fetched(module, one.vector)

        self.put(one, ready, fetch)

    def put(
        self, one: Owed, ready: Callable[[], bool], fetch: Callable[[], Sequence[float]]
    ) -> None:
        """`fetch` is called once `ready` says so."""
        with self._news:
            if len(self._waiting) >= OWED_MAX:
                one.producer.count_drop(output.TELEMETRY)
                return
            self._waiting.append((one, ready, fetch))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="ranklog-tensors", daemon=True
                )
                self._thread.start()
            self._news.notify()

    def settle(self, timeout_s: float) -> None:
        """Wait until nothing is owed, or the time is over."""
        ends = time.monotonic() + timeout_s
        with self._news:
            while self._waiting and (left := ends - time.monotonic()) > 0:
                self._news.wait(left)

    def forget(self) -> None:
        """In a child after fork: what is on its way is the parent's."""
        self.__init__()  # type: ignore[misc]

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._waiting:
                    self._news.notify_all()
                    self._news.wait()
                one, ready, fetch = self._waiting[0]
            try:
                while not ready():
                    time.sleep(_LOOK_S)
                one.write(fetch())
            except Exception:
                trouble.swallow("fetching the summary of a tensor")
            with self._news:
                self._waiting.popleft()

    def _fetched(self, module: Any, vector: Any) -> Any:
        """Through a stream of our own: the job's may have seconds of work before it."""
        stream = self._side.get(vector.device)
        if stream is None:
            stream = self._side[vector.device] = module.Stream(device=vector.device)
        with module.stream(stream):
            return vector.tolist()


def _always() -> bool:
    return True


_usual = _every()
owed = Deliveries()
settlers.append(owed.settle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=owed.forget)
