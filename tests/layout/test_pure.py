"""The planner's half of layout needs neither numpy nor pyarrow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PURE = ("keys", "schema", "index", "index_head", "bloom", "tokens_pure")


def test_the_planners_modules_import_nothing_heavy() -> None:
    imports = "; ".join(f"import ranklog.layout.{name}" for name in PURE)
    check = "print(sorted({'numpy', 'pyarrow', 'duckdb'} & set(sys.modules)))"
    path = str(Path(__file__).parents[2] / "shared")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {imports}; {check}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
