"""What `sizes` refuses: libraries of another machine, and modules that each cold start would compile."""

from __future__ import annotations

import py_compile
from pathlib import Path

import pytest

from tests.artefacts.sizes import sizes

TEXT = """
Parameters: { Architecture: { Type: String, Default: x86_64 } }
Resources:
  Layer: { Type: "AWS::Serverless::LayerVersion", Properties: { ContentUri: Layer } }
  One:
    Type: AWS::Serverless::Function
    Properties: { CodeUri: One, Handler: app.handler, Layers: [!Ref Layer], Architectures: [!Ref Architecture] }
"""
_HEAD = b"\x7fELF\x02\x01" + bytes(10) + b"\x03\0"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A function with a layer of one module, compiled, and one library of x86_64."""
    (tmp_path / "template.yaml").write_text(TEXT)
    (tmp_path / "One").mkdir()
    (tmp_path / "One" / "app.py").write_text("x")
    (tmp_path / "Layer").mkdir()
    (tmp_path / "Layer" / "it.so").write_bytes(_HEAD + b"\x3e\0")
    compiled(tmp_path, py_compile.PycInvalidationMode.UNCHECKED_HASH)
    return tmp_path


def compiled(built: Path, mode: py_compile.PycInvalidationMode) -> None:
    source = built / "Layer" / "it.py"
    source.write_text("NAME = 1\n")
    target = built / "Layer" / "__pycache__" / "it.cpython-313.pyc"
    py_compile.compile(str(source), str(target), invalidation_mode=mode)


def test_a_functions_size_is_its_own_and_its_layers(built: Path) -> None:
    [size] = sizes(built, "x86_64")
    layer = sum(path.stat().st_size for path in (built / "Layer").rglob("*") if path.is_file())
    assert (size.parts, size.bytes) == ({"One": 1, "Layer": layer}, 1 + layer)


def test_a_library_of_another_machine_is_refused(built: Path) -> None:
    with pytest.raises(RuntimeError, match=r"it\.so is not for arm64"):
        sizes(built, "arm64")


def test_a_module_that_would_be_compiled_or_checked_is_refused(built: Path) -> None:
    compiled(built, py_compile.PycInvalidationMode.TIMESTAMP)
    with pytest.raises(RuntimeError, match=r"it\.py has no \.pyc"):
        sizes(built, "x86_64")
