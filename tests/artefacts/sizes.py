"""What each function takes unzipped with its layers, against Lambda's limit and our mark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.artefacts.template import Function, Template
from tests.bench.figures import Figure, show

# Lambda counts in MiB where it says 250 MB; the mark is in MB as they are.
LIMIT_BYTES = 250 * 1024 * 1024
MARK_MB = 200.0
# e_machine in the header of an ELF file.
_MACHINES = {"x86_64": 0x3E, "arm64": 0xB7}


@dataclass(frozen=True, slots=True)
class Size:
    """One function's bytes by part: its own folder and each layer."""

    function: str
    parts: dict[str, int]

    @property
    def bytes(self) -> int:
        """All of it, as Lambda counts."""
        return sum(self.parts.values())


def sizes(built: Path, architecture: str) -> list[Size]:
    """Of every function of a build. Raises RuntimeError where something of it could not run there."""
    found = []
    template = Template(built / "template.yaml", {"Architecture": architecture})
    for name, function in template.functions().items():
        folders = (function.folder, *function.layers)
        wrong = [problem for folder in folders for problem in problems(folder, function)]
        if wrong:
            raise RuntimeError(f"{name}: {'; '.join(wrong[:5])}")
        found.append(Size(name, {folder.name: _bytes(folder) for folder in folders}))
    return found


def problems(folder: Path, function: Function) -> Iterator[str]:
    """What of a built folder can't run in its function: libraries of another machine, layers that Python
    would compile anew in each cold start."""
    for path in folder.rglob("*.so*"):
        with path.open("rb") as file:
            head = file.read(20)
        machine = int.from_bytes(head[18:20], "little")
        if head[:4] == b"\x7fELF" and machine != _MACHINES[function.architecture]:
            yield f"{path} is not for {function.architecture}"
    if folder in function.layers:
        for path in folder.rglob("*.py"):
            compiled = path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc"
            # flags 1: checked against a hash of the source, 0 and 1 of them: not looked at
            if not compiled.is_file() or compiled.read_bytes()[4:8] != b"\x01\0\0\0":
                yield f"{path} has no .pyc that is taken unseen"


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def figures(built: Path, architecture: str) -> list[Figure]:
    """In MB, with the largest parts named."""
    return [
        Figure(f"{size.function}: {_parts(size)}", size.bytes / 1e6, "MB", MARK_MB)
        for size in sizes(built, architecture)
    ]


def _parts(size: Size) -> str:
    return " + ".join(f"{name} {part / 1e6:.1f}" for name, part in size.parts.items() if part > 1e5)


def main(built: Path, architecture: str) -> int:
    """Print them; 1 where the mark, and so the limit, is exceeded."""
    found = figures(built, architecture)
    show(found)
    print(f"Lambda's limit: {LIMIT_BYTES / 1e6:.1f} MB")
    return 0 if all(figure.ok for figure in found) else 1
