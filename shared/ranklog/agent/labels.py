"""Labels that a launcher puts before each line of its ranks' output: which rank it is of.

    srun --label                3: text          (" 3: " and "03: " where there are ten and more)
    mpirun --tag-output         [1,3]<stdout>: text
           --output tag-detailed, tag-fullname, rank, timestamp
                                [1,3][node:4711]<stderr>: text, [prterun-node-1@1,3]<stdout>: text,
                                [3]<stdout>: text, [Sun Nov 29 22:10:06 2026][1,3]<stdout>: text
    mpiexec -l                  [3] text         (Hydra: MPICH, Intel MPI)

A label stays in the line; its body begins behind it, behind what a container's runtime puts before each
line of its log (`2026-03-01T07:00:00.123456789Z stderr F text`), and behind torch's own `[rank3]: ` on
what a rank prints of an uncaught exception.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence

from ranklog.model.frame import STREAM_RANK

_TIME = rb"(?:\[[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} [\d:]{8} \d{4}\])?"
_MPI = (
    _TIME + rb"\[(?:[^\[\]\s]{1,256},)?(\d{1,7})\](?:\[[^\[\]\s]{1,256}\])?<std(?:out|err|diag)>: ?"
)
FORMS = {
    "slurm": re.compile(rb" {0,6}(\d{1,7}): "),
    "mpi": re.compile(_MPI),
    "hydra": re.compile(rb"\[(\d{1,7})\] "),
}

_CRI = rb"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] )"
_TORCH = rb"(?:\[rank\d+\]:? )"
_ENVELOPE = re.compile(rb"%b?%b?" % (_CRI, _TORCH))
# No line has an envelope without one of these.
_SIGNS = (b"[rank", b" stdout ", b" stderr ")


def body_at(line: bytes, label_end: int = 0) -> int:
    """Where a line's body begins, behind its label's end."""
    envelope = _ENVELOPE.match(line, label_end)
    assert envelope is not None  # it may be empty
    return envelope.end()


class Labels:
    """Reads the labels of one form."""

    def __init__(self, form: str) -> None:
        """Raises KeyError for a form that there is none of."""
        self._match = FORMS[form].match

    def of(self, line: bytes) -> tuple[int, int]:
        """(rank, where the text begins); STREAM_RANK and 0 for a line without a label."""
        found = self._match(line)
        return (STREAM_RANK, 0) if found is None else (int(found[1]), found.end())

    def of_all(self, lines: Sequence[bytes]) -> tuple[array[int], array[int]]:
        """As `of`, of many: ranks, and where their texts begin."""
        found = list(map(self._match, lines))
        ranks = array("i", [STREAM_RANK if one is None else int(one[1]) for one in found])
        return ranks, array("I", [0 if one is None else one.end() for one in found])


def places(lines: Sequence[bytes], whole: bytes, labels: Labels | None) -> tuple[array[int], ...]:
    """Ranks and body starts of many lines, `whole` together; empty where all are what nothing says."""
    ranks, starts = labels.of_all(lines) if labels else (array("i"), array("I"))
    if any(sign in whole for sign in _SIGNS):
        starts = array("I", map(body_at, lines, starts or array("I", [0]) * len(lines)))
    return ranks, starts
