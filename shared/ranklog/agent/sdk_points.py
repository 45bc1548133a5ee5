"""Values that a rank recorded, from a ring's short forms and a journal's records to rows of a frame.

Shapes: n records, v values. The names and dimensions of a record are its *set*, numbered once; a
record costs a few appends, its values one copy.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, TypeAlias

from ranklog import limits
from ranklog.agent.framer import Framer
from ranklog.agent.mask import Masker
from ranklog.agent.rows import StreamState
from ranklog.model.frame import NO_ITERATION, NO_RANK
from ranklog.model.names import printable
from ranklog.model.point import NOT_MEASURED, canonical_json
from ranklog.produce.values import cut
from ranklog.stream.point_batch import PointBatch, PointSet
from ranklog.stream.point_builder import summary_bytes

# Sets of records that were written with all their words, and contexts with texts of their own, that
# are remembered; older ones are numbered again.
_REMEMBERED_MAX = 65_536
# What a record's values and names may take in a frame; larger records become several.
_RECORD_BYTES_MAX = 128 * limits.KIB
_NAN = float("nan")

Dims: TypeAlias = "Mapping[str, Any] | None"
# Rank (STREAM_RANK, NO_RANK) and metadata of a context's number. Raises KeyError.
Contexts: TypeAlias = "Callable[[int], tuple[int, Mapping[str, Any] | None]]"


class PointRecords:
    """Records in their order, as they come out of the decoder."""

    def __init__(self) -> None:
        self.ts: array[int] = array("q")
        self.iteration: array[int] = array("q")
        self.context: list[int] = []  # below 0: own[-1 - it]
        self.set: list[int] = []  # below 0: written with all its words
        self.size: list[int] = []
        self.values: array[float] = array("d")
        self.missing: list[int] = []
        self.summaries: list[tuple[int, dict[str, Any]]] = []
        # context, and what is told of it with the record: its metadata, texts among the values
        self.own: list[tuple[int, dict[str, Any]]] = []

    def __len__(self) -> int:
        return len(self.ts)


class PointDecoder:
    """Of one process: its sets, and records that were not taken yet."""

    def __init__(self) -> None:
        self.sets: dict[int, tuple[tuple[str, ...], Dims]] = {}
        self.records = PointRecords()
        self._numbers: dict[tuple[tuple[str, ...], str], int] = {}

    def define(self, number: int, names: Sequence[Any], dims: Dims) -> None:
        """Names and dimensions that come together from now on."""
        self.sets[number] = (tuple(printable(str(name)) for name in names), dims)

    def one(self, ts_ns: int, context: int, iteration: int, number: int, value: float) -> None:
        """A record of a single float. Raises KeyError for a set that nobody defined."""
        if len(self.sets[number][0]) != 1:
            raise ValueError(f"one value for a set of {len(self.sets[number][0])} names")
        records = self.records
        records.values.append(value)
        records.ts.append(ts_ns)
        records.context.append(context)
        records.iteration.append(iteration)
        records.set.append(number)
        records.size.append(1)

    def many(
        self, ts_ns: int, context: int, iteration: int, number: int, values: list[Any]
    ) -> None:
        """A record of a defined set. Raises KeyError, ValueError, TypeError for what is none."""
        names, dims = self.sets[number]
        if len(names) != len(values):
            raise ValueError(f"{len(values)} values for {len(names)} names")
        records, before = self.records, len(self.records.values)
        if 8 * len(values) <= _RECORD_BYTES_MAX // 8:
            try:
                records.values.extend(values)
            except TypeError:  # not only numbers
                del records.values[before:]
            else:
                self._append(ts_ns, context, iteration, number, len(values))
                return
        whole = dict(zip(names, values, strict=True))
        self.whole(ts_ns, context, iteration, whole, dims)

    def whole(
        self,
        ts_ns: int,
        context: int,
        iteration: int,
        values: Mapping[Any, Any],
        dims: Dims,
        told: Dims = None,
    ) -> None:
        """A record with all its words; `told`: metadata of a context without a number. Raises
        TypeError, ValueError for what is none."""
        array("q", [ts_ns, context, iteration])  # raises before anything is taken
        values = {name: _read(value) for name, value in values.items()}
        texts = {str(k): v for k, v in values.items() if type(v) is str}
        if texts or told:
            self.records.own.append((context, {**(told or {}), **texts}))
            context = -len(self.records.own)
        names: list[str] = []
        held: list[Any] = []
        size = 0
        for name, value in values.items():
            if str(name) in texts:
                continue
            names.append(printable(str(name)))
            held.append(value)
            size += 16 + 4 * len(names[-1])
            if type(value) is dict:
                size += summary_bytes(value)
            if size > _RECORD_BYTES_MAX:
                self._whole(ts_ns, context, iteration, names, held, dims)
                names, held, size = [], [], 0
        if names:
            self._whole(ts_ns, context, iteration, names, held, dims)

    def _whole(
        self,
        ts_ns: int,
        context: int,
        iteration: int,
        names: list[str],
        values: list[Any],
        dims: Dims,
    ) -> None:
        records, at = self.records, len(self.records.values)
        numbers = [_number(value) for value in values]
        number = self._number_of(tuple(names), dims)
        records.values.extend(numbers)
        for place, value in enumerate(values, at):
            if value is None:
                records.missing.append(place)
            elif type(value) is dict:
                records.summaries.append((place, value))
        self._append(ts_ns, context, iteration, number, len(values))

    def _append(self, ts_ns: int, context: int, iteration: int, number: int, size: int) -> None:
        records = self.records
        records.ts.append(ts_ns)
        records.context.append(context)
        records.iteration.append(iteration)
        records.set.append(number)
        records.size.append(size)

    def _number_of(self, names: tuple[str, ...], dims: Dims) -> int:
        key = (names, canonical_json(dims or {}))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = -1 - len(self._numbers)
            self.sets[number] = (names, dims)
        return number

    def drain(self) -> PointRecords:
        """What was decoded since the last time."""
        records, self.records = self.records, PointRecords()
        return records

    def forget(self) -> None:
        """Start numbering again where too much is remembered; between two drains."""
        if len(self._numbers) > _REMEMBERED_MAX:
            self._numbers.clear()
            self.sets = {number: one for number, one in self.sets.items() if number >= 0}


def _read(value: Any) -> Any:
    """A number that was written as text is one (an integer beyond 64 bits comes so); other text is
    told beside the values."""
    if value is None or isinstance(value, (int, float, dict)):
        return value
    if type(value) is not str:
        return cut(str(value))
    if value == NOT_MEASURED:
        return None
    try:
        return float(value)
    except ValueError:
        return value


def _number(value: Any) -> float:
    """The value as a column holds it. Raises TypeError, OverflowError for what is no number."""
    if value is None or type(value) is dict:
        return _NAN
    if not isinstance(value, (int, float)):
        raise TypeError(f"{value!r:.40} is no value")
    return float(value)


class SdkPoints:
    """Turns a process's records into batches of its telemetry stream."""

    def __init__(self, state: StreamState, masker: Masker, contexts: Contexts) -> None:
        self._state = state
        self._masker = masker
        self._context = contexts
        self._told: dict[int, tuple[int, str | None]] = {}
        self._sets: dict[int, tuple[Any, PointSet]] = {}
        self.damaged = 0

    def redefined(self, context: int) -> None:
        """What a context says may have changed."""
        self._told.pop(context, None)

    def take(self, decoder: PointDecoder, framer: Framer) -> int | None:
        """Move the decoder's records to the framer; the last iteration among them."""
        records = decoder.drain()
        if not len(records):
            return None
        told = {at: self._tell(at, records.own) for at in set(records.context)}
        known = {at: one for at, one in told.items() if one is not None}
        sets = {number: self._set(number, decoder) for number in set(records.set)}
        ranks = {at: NO_RANK if one is None else one[0] for at, one in told.items()}
        batch = PointBatch(
            ts=records.ts,
            rank=array("i", map(ranks.__getitem__, records.context)),
            iteration=records.iteration,
            set=records.set,
            sets=sets,
            context=records.context,
            contexts={at: text for at, (_, text) in known.items()},
            size=records.size,
            values=records.values,
            missing=records.missing,
            summaries=records.summaries,
        )
        if len(known) == len(told):
            framer.add_points(self._state, batch)
        else:
            self._take_known(batch, known, framer)
        decoder.forget()
        latest = max(records.iteration)
        return None if latest == NO_ITERATION else latest

    def _take_known(self, batch: PointBatch, known: Container[int], framer: Framer) -> None:
        """Records of contexts that nobody defined make no sense."""
        for record, context in enumerate(batch.context):
            if context in known:
                framer.add_points(self._state, batch[record : record + 1])
            else:
                self.damaged += 1

    def _tell(
        self, number: int, own: Sequence[tuple[int, dict[str, Any]]]
    ) -> tuple[int, str | None] | None:
        """Rank and metadata, None for a context that nobody defined."""
        try:
            if number < 0:
                context, texts = own[-1 - number]
                rank, metadata = self._context(context)
                return rank, canonical_json({**(metadata or {}), **self._masker.metadata(texts)})
            found = self._told.get(number)
            if found is None:
                rank, metadata = self._context(number)
                found = self._told[number] = (rank, canonical_json(metadata) if metadata else None)
            return found
        except KeyError:
            return None

    def _set(self, number: int, decoder: PointDecoder) -> PointSet:
        whole = decoder.sets[number]
        known = self._sets.get(number)
        if known is None or known[0] is not whole:
            if len(self._sets) > 2 * _REMEMBERED_MAX:
                self._sets.clear()
            dims = canonical_json(self._masker.metadata(whole[1] or {}))
            known = self._sets[number] = (whole, (dims, whole[0]))
        return known[1]
