"""layers/strip.py: a library loses what is not loaded, and loads as before."""

from __future__ import annotations

import importlib.util
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.artefacts.build import ROOT

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")


@pytest.fixture(scope="module")
def stripping() -> ModuleType:
    spec = importlib.util.spec_from_file_location("strip", ROOT / "layers" / "strip.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_library_that_lost_its_tables_still_works(stripping: ModuleType, tmp_path: Path) -> None:
    import zstandard

    assert zstandard.__file__ is not None
    package = Path(zstandard.__file__).parent
    [library] = package.glob("backend_c*.so")
    short = stripping.strip(library.read_bytes())
    if short == library.read_bytes():
        pytest.skip("this wheel has no tables")
    copy = tmp_path / "zstandard"
    copy.mkdir()
    for path in [*package.glob("*.py"), *package.glob("*.pyi")]:
        (copy / path.name).write_bytes(path.read_bytes())
    (copy / library.name).write_bytes(short)
    program = "import zstandard as z; print(z.__file__, z.decompress(z.compress(b'as before')))"
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert said.stdout.split(maxsplit=1) == [f"{copy}/__init__.py", "b'as before'\n"], said.stderr
    assert stripping.strip(short) == short


def elf(*sections: tuple[int, int, int], segment_end: int, size: int) -> bytes:
    """A file with one segment up to `segment_end`; sections are (flags, offset, length)."""
    entries = [(0, 0, 0), *sections]
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", 0, 1, flags, 0, at, length, 0, 0, 1, 0)
        for flags, at, length in entries
    )
    ident = b"\x7fELF\x02\x01" + bytes(10)
    head = _HEADER.pack(ident, 3, 0x3E, 1, 0, 64, size, 0, 64, 56, 1, 64, len(entries), 1)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, segment_end, segment_end, 0x1000)
    return (head + segment).ljust(size, b"x") + table


def test_what_is_behind_all_that_is_loaded_goes(stripping: ModuleType) -> None:
    data = elf((2, 200, 100), (0, 300, 700), segment_end=300, size=1000)
    short = stripping.strip(data)
    assert len(short) == 300 and short[64:] == data[64:300]
    assert _HEADER.unpack_from(short)[6] == 0  # no table of sections


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"#!/bin/sh\n",
        b"\x7fELF\x01\x01" + bytes(100),  # 32 bits
        elf(
            (0, 200, 50), (2, 300, 700), segment_end=1000, size=1000
        ),  # tables before what is loaded
        elf((2, 200, 800), segment_end=1000, size=1000),  # nothing to take out
    ],
)
def test_everything_else_stays_as_it_is(stripping: ModuleType, data: bytes) -> None:
    assert stripping.strip(data) == data
