"""`python strip.py FOLDER`: take symbol tables and debug information out of the shared libraries below.

Wheels carry them (zstandard's is ten times its code), nothing at run time reads them, and a fresh
machine has no binutils for Lambda's other architecture. A library whose tables do not come behind all
that is loaded stays as it is: nothing that is loaded ever moves.
"""

import struct
import sys
from pathlib import Path

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_ALLOCATED = 0x2  # SHF_ALLOC
_NOBITS = 8


def strip(data: bytes) -> bytes:
    """A 64-bit little-endian ELF file without what is not loaded, or the bytes themselves."""
    if data[:6] != b"\x7fELF\x02\x01":
        return data
    header = list(_HEADER.unpack_from(data))
    programs_at, sections_at, programs, sections = header[5], header[6], header[10], header[12]
    found = [_PROGRAM.unpack_from(data, programs_at + i * _PROGRAM.size) for i in range(programs)]
    # offset + size in the file: of every segment, and of the table of segments itself
    end = max([program[2] + program[5] for program in found], default=0)
    end = max(end, programs_at + programs * _PROGRAM.size)
    table = [_SECTION.unpack_from(data, sections_at + i * _SECTION.size) for i in range(sections)]
    kept = [entry for entry in table if entry[2] & _ALLOCATED]
    end = max([end, *(entry[4] + entry[5] for entry in kept if entry[1] != _NOBITS)])
    dropped = [entry for entry in table[1:] if not entry[2] & _ALLOCATED]
    if not dropped or min(entry[4] for entry in dropped) < end:
        return data
    # No table of sections: a loader reads segments only.
    header[6] = header[11] = header[12] = header[13] = 0
    return _HEADER.pack(*header) + data[_HEADER.size : end]


def main() -> int:
    """Say how many bytes it was less."""
    saved = 0
    for path in sorted(Path(sys.argv[1]).rglob("*.so*")):
        data = path.read_bytes()
        short = strip(data)
        if len(short) < len(data):
            path.write_bytes(short)
            saved += len(data) - len(short)
    print(f"stripped {saved:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
