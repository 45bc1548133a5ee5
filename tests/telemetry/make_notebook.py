"""`python -m tests.telemetry.make_notebook` writes docs/telemetry.ipynb and runs it: outputs are stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

PAGE = Path(__file__).parents[2] / "docs" / "telemetry.ipynb"

CELLS = [
    (
        "markdown",
        "# From a log file to the line behind a spike\n\n"
        "A job that has never heard of ranklog wrote its console to a file, as Megatron-LM does. The "
        "file is imported, its numbers become series, and one question joins them with the lines.\n\n"
        "`python -m tests.telemetry.make_notebook` writes and runs this page; a test holds it.",
    ),
    (
        "code",
        "import random\n"
        "import tempfile\n"
        "from pathlib import Path\n\n"
        "folder = Path(tempfile.mkdtemp())\n"
        "rng = random.Random(7)\n"
        "lines = []\n"
        "for i in range(1, 301):\n"
        "    clock = f'[2026-03-01 10:{i // 60:02d}:{i % 60:02d}]'\n"
        "    loss = 8 / (1 + i / 20) ** 0.5 + rng.gauss(0, 0.02)\n"
        "    grad = 40.0 if i == 212 else 1 + rng.gauss(0, 0.05)\n"
        "    lines.append(\n"
        "        f'{clock} iteration {i:8d}/     300 | consumed samples: {i * 512:12d} |'\n"
        "        f' elapsed time per iteration (ms): {rng.gauss(910, 9):.1f} |'\n"
        "        f' learning rate: 1.5E-04 | global batch size:   512 | lm loss: {loss:.6E} |'\n"
        "        f' loss scale: 1.0 | grad norm: {grad:.3f} |'\n"
        "    )\n"
        "    if i == 211:\n"
        "        lines.append(f'{clock} ERROR NVRM: Xid (PCI:0000:3b:00): 48, pid=812, DBE')\n"
        "(folder / 'rank_0.log').write_text('\\n'.join(lines) + '\\n')\n"
        "print(lines[0])",
    ),
    ("markdown", "Import it. The presets read the numbers; nothing was told to them."),
    (
        "code",
        "import subprocess\n"
        "import sys\n\n"
        "ranklog_command = Path(sys.executable).with_name('ranklog')\n"
        "command = [ranklog_command, 'import', 'rank_0.log', '--run', 'llama']\n"
        "command += ['--rank', '0', '--store', 'logs']\n"
        "done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)\n"
        "print(done.stdout.splitlines()[-1].partition(' (')[0])",
    ),
    (
        "markdown",
        "Series have stable names, whatever the framework calls them: `lm loss` is `loss`, "
        "`elapsed time per iteration (ms)` is `iteration_time_ms`.",
    ),
    (
        "code",
        "import ranklog\n\n"
        "client = ranklog.Client(store=str(folder / 'logs'))\n"
        "found = client.series('*', run='llama')\n"
        "[(one.name, one.unit, one.written, one.read) for one in found]",
    ),
    ("markdown", "An answer shows itself: picture, table, and what is missing."),
    ("code", "client.series('loss OR grad_norm', run='llama')"),
    ("markdown", "What stands out, without thresholds to set:"),
    (
        "code",
        "events = client.series('*', run='llama', detect=True).trailer()['events']\n"
        "[(e['kind'], e['series'], e['first_iteration'], e['value']) for e in events]",
    ),
    (
        "markdown",
        "And the question that needs both: which errors came at most two iterations before a spike of "
        "the gradient, on any rank?",
    ),
    (
        "code",
        "answer = client.search(\n"
        "    'level>=ERROR near(spike(grad_norm, ratio:10), iteration, before 2, any)', run='llama'\n"
        ")\n"
        "for line in answer.matches:\n"
        "    print(line.text)\n"
        "answer.completeness.state",
    ),
    ("markdown", "Values around it, as a frame:"),
    (
        "code",
        "near = client.series('grad_norm near(spike(grad_norm, ratio:10), iteration, 2)', run='llama')\n"
        "near.to_pandas()[['iteration', 'series', 'value']]",
    ),
]


def build() -> Any:
    """The page without outputs."""
    book = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
    make = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    book.cells = [make[kind](text, id=f"cell-{at}") for at, (kind, text) in enumerate(CELLS)]  # type: ignore[operator]
    book.metadata["language_info"] = {"name": "python"}
    return book


def run(book: Any) -> Any:
    """The page with its outputs. Raises nbclient's CellExecutionError where a cell fails."""
    NotebookClient(book, timeout=120, kernel_name="python3", record_timing=False).execute()
    book.metadata = nbformat.from_dict({"language_info": {"name": "python"}})  # type: ignore[no-untyped-call]
    return book


def main() -> None:
    nbformat.write(run(build()), PAGE)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
