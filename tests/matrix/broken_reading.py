"""Rules of reading and of completeness, broken: each must show in a schedule."""

from __future__ import annotations

from ranklog.answer import completeness
from ranklog.client import catalog, scope
from ranklog.client.unheard import Unheard
from ranklog.layout import keys
from ranklog.plan.overlap import Overlaps
from tests.matrix import faults as f
from tests.matrix.breaking import breaks, put_in_place
from tests.matrix.faults import Injection


@breaks("overlap is found before the scan, and what is there twice is counted once", seed=48)
def overlap_not_skipped() -> None:
    put_in_place(scope, overlaps=lambda *_: Overlaps())


@breaks("a hole in the seqs of a stream is a gap")
def gaps_not_seen() -> None:
    put_in_place(completeness, _gaps=lambda *_: ([], False))


@breaks("the watermark is before the first gap", seed=1)
def watermark_beyond_gaps() -> None:
    put_in_place(completeness, _watermark=lambda state, window, *_: window.to_ns or state.last_ts)


@breaks("without a fence or an end nobody knows that nothing follows")
def no_fence_needed() -> None:
    put_in_place(completeness, _proven=lambda *_: True)


@breaks("a rank that never appeared is named", seed=4)
def absent_ranks_not_named() -> None:
    put_in_place(completeness, absent_ranks=lambda *_, **__: [])


@breaks("a launch of which nothing was read is no reason to call an answer complete")
def unheard_launch_is_complete() -> None:
    put_in_place(scope, find_unheard=lambda *_: Unheard())


@breaks(
    "what could not be read is told: an answer is partial, and names it",
    Injection(f.QUERY, "index.get", f.DOWN, 8),
    seed=1,
)
def unread_not_told() -> None:
    put_in_place(scope.Scope, completeness=lambda of, _: of.judged)


@breaks("what is beyond the hours of a batch lies with the late ones, and is looked for there")
def late_not_listed() -> None:
    put_in_place(catalog, _late_touches=lambda key, *_: keys.hour_of_index_prefix(key) is not None)
