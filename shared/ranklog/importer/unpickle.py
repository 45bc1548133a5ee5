"""Pickles of plain data, read by an interpreter of our own: nothing of a file is ever imported or called.

Known are the opcodes that numbers, texts, bytes, lists, tuples, dicts and sets need, in protocols 2 to 5;
any other (GLOBAL, REDUCE, BUILD, persistent ids, extensions, …) is refused, and so is what would take more
memory than the file itself: memo places far away, long integers, deep nesting.
Opcodes: Python's `pickletools`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

_LONG_BYTES_MAX = 16  # torch writes 64 bit
DEPTH_MAX = 32
_KEYS = (str, int, float, bool, bytes, type(None))


class NotPlain(ValueError):
    """No pickle of plain data; the message says where and why."""


def load_plain(data: bytes) -> Any:
    """The value. Raises NotPlain, whatever the bytes are."""
    machine = _Machine(data)
    try:
        value = machine.run()
    except (IndexError, struct.error) as error:
        raise NotPlain(f"it breaks off at byte {machine.at} of {len(data)}") from error
    except (UnicodeDecodeError, OverflowError, AttributeError, TypeError) as error:
        raise NotPlain(f"damaged before byte {machine.at}") from error
    _check_depth(value)
    return value


class _Machine:
    """The stack, the memo, and where it is in the data."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        data, push, simple, own = self.data, self.stack.append, _SIMPLE, _OWN
        while True:
            code = data[self.at]
            self.at += 1
            reader = simple.get(code)
            if reader is not None:
                value, self.at = reader(data, self.at)
                push(value)
                continue
            if code == 0x2E:  # STOP
                if len(self.stack) != 1 or self.marks:
                    raise NotPlain("it ends with something left over")
                return self.stack[0]
            step = own.get(code)
            if step is None:
                raise NotPlain(f"opcode 0x{code:02x} at byte {self.at - 1} is none of plain data")
            step(self)

    # --- steps ----------------------------------------------------------------------------------
    def unsigned(self, size: int) -> int:
        end = self.at + size
        if end > len(self.data):
            raise IndexError(end)
        value = int.from_bytes(self.data[self.at : end], "little")
        self.at = end
        return value

    def protocol(self) -> None:
        if not 2 <= self.unsigned(1) <= 5:
            raise NotPlain("a protocol that is not read, 2 to 5 are")

    def frame(self) -> None:
        self.unsigned(8)

    def mark(self) -> None:
        self.marks.append(len(self.stack))

    def taken(self) -> list[Any]:
        """What stands above the last mark."""
        start = self.marks.pop()
        found = self.stack[start:]
        del self.stack[start:]
        return found

    def list_of(self) -> None:
        self.stack.append(self.taken())

    def tuple_of(self) -> None:
        self.stack.append(tuple(self.taken()))

    def dict_of(self) -> None:
        items = self.taken()
        self.stack.append({})
        self.set_all(items)

    def small_tuple(self, size: int) -> None:
        if len(self.stack) < size:
            raise IndexError(size)
        items = tuple(self.stack[-size:])
        del self.stack[-size:]
        self.stack.append(items)

    def append(self) -> None:
        value = self.stack.pop()
        _of(self.stack[-1], list).append(value)

    def appends(self) -> None:
        values = self.taken()
        _of(self.stack[-1], list).extend(values)

    def set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.set_all([key, value])

    def set_items(self) -> None:
        self.set_all(self.taken())

    def set_all(self, items: list[Any]) -> None:
        target = _of(self.stack[-1], dict)
        if len(items) % 2:
            raise NotPlain("a key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[_key(key)] = value

    def add_items(self) -> None:
        values = self.taken()
        _of(self.stack[-1], set).update(_key(value) for value in values)

    def frozen(self) -> None:
        self.stack.append(frozenset(_key(value) for value in self.taken()))

    def put(self, size: int) -> None:
        place = self.unsigned(size)
        if place > len(self.data):
            raise NotPlain(f"a memo of {place} places in {len(self.data)} bytes")
        self.memo[place] = self.stack[-1]

    def memoize(self) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def get(self, size: int) -> None:
        place = self.unsigned(size)
        if place not in self.memo:
            raise NotPlain(f"memo place {place} was never filled")
        self.stack.append(self.memo[place])


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise NotPlain(f"a {type(value).__name__} where a {kind.__name__} is meant")
    return value


def _key(value: Any) -> Any:
    if not isinstance(value, _KEYS):
        raise NotPlain(f"a {type(value).__name__} as a key")
    return value


Reader = Callable[[bytes, int], tuple[Any, int]]


def _constant(value: Any) -> Reader:
    return lambda data, at: (value, at)


def _packed(form: str) -> Reader:
    shape = struct.Struct(form)
    return lambda data, at: (shape.unpack_from(data, at)[0], at + shape.size)


def _counted(size: int, read: Callable[[bytes], Any]) -> Reader:
    """Bytes behind their length of `size` bytes."""

    def reader(data: bytes, at: int) -> tuple[Any, int]:
        start = at + size
        end = start + int.from_bytes(data[at:start], "little")
        if end > len(data) or start > len(data):
            raise IndexError(end)
        return read(data[start:end]), end

    return reader


def _long(data: bytes) -> int:
    if len(data) > _LONG_BYTES_MAX:
        raise NotPlain(f"an integer of {len(data)} bytes, limit {_LONG_BYTES_MAX}")
    return int.from_bytes(data, "little", signed=True)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _latin(data: bytes) -> str:
    return data.decode("latin-1")


def _new(kind: Callable[[], Any]) -> Reader:
    return lambda data, at: (kind(), at)


_SIMPLE: dict[int, Reader] = {
    0x4E: _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    0x4A: _packed("<i"),
    0x4B: _packed("<B"),
    0x4D: _packed("<H"),
    0x47: _packed(">d"),
    0x8A: _counted(1, _long),
    0x8B: _counted(4, _long),
    0x58: _counted(4, _text),
    0x8C: _counted(1, _text),
    0x8D: _counted(8, _text),
    0x54: _counted(4, _latin),
    0x55: _counted(1, _latin),
    0x42: _counted(4, bytes),
    0x43: _counted(1, bytes),
    0x8E: _counted(8, bytes),
    0x5D: _new(list),
    0x7D: _new(dict),
    0x29: _constant(()),
    0x8F: _new(set),
}
_OWN: dict[int, Callable[[_Machine], None]] = {
    0x80: _Machine.protocol,
    0x95: _Machine.frame,
    0x28: _Machine.mark,
    0x6C: _Machine.list_of,
    0x74: _Machine.tuple_of,
    0x64: _Machine.dict_of,
    0x85: lambda machine: machine.small_tuple(1),
    0x86: lambda machine: machine.small_tuple(2),
    0x87: lambda machine: machine.small_tuple(3),
    0x61: _Machine.append,
    0x65: _Machine.appends,
    0x73: _Machine.set_item,
    0x75: _Machine.set_items,
    0x90: _Machine.add_items,
    0x91: _Machine.frozen,
    0x71: lambda machine: machine.put(1),
    0x72: lambda machine: machine.put(4),
    0x94: _Machine.memoize,
    0x68: lambda machine: machine.get(1),
    0x6A: lambda machine: machine.get(4),
}


def _check_depth(value: Any) -> None:
    """Level by level, every container once."""
    level, seen = [value], set[int]()
    for _ in range(DEPTH_MAX):
        below: list[Any] = []
        for item in level:
            if isinstance(item, (list, tuple, dict)) and id(item) not in seen:
                seen.add(id(item))
                below += item.values() if isinstance(item, dict) else item
        if not below:
            return
        level = below
    raise NotPlain(f"nested more than {DEPTH_MAX} deep")
