"""Before anything is stored: look at the beginning of every file, then decide for all of them.

Files of one import explain each other: a rank's file the local ranks of its neighbours, a dated file
the year of the one beside it, per-rank files that the console is their copy.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import timezone, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranklog.errors import BadInput
from ranklog.importer.analysis import Profile
from ranklog.importer.classify import Classifier, Heads, without_colours
from ranklog.importer.clocks import local_offset_of
from ranklog.importer.envelopes import Layer, Peeled, find_layers, peel
from ranklog.importer.evidence import (
    Evidence,
    decide_rule,
    decide_stream_rank,
    decide_tree_offset,
    gather_evidence,
)
from ranklog.importer.lines import decode_lines
from ranklog.importer.paths import PathFacts, match_rank, read_path
from ranklog.importer.points import is_points
from ranklog.importer.ranks import RankRule
from ranklog.importer.sources import Source, read_blocks, refuse_binary
from ranklog.importer.times import FULL, NO_TIME, Anchor
from ranklog.importer.timing import own_times
from ranklog.importer.windows import HEAD_WINDOW_BYTES, slices
from ranklog.limits import TIME_FUTURE_NS_MAX

# The beginning that decides about a file.
PROBE_BYTES = 8 << 20
# Enough of a file to see whether another is its copy.
_COPY_BYTES = 1 << 20
_COPY_SHARE_MIN = 0.9


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says about all files. `date_ns`: local noon of --date, as if in UTC."""

    zone: tzinfo
    now_ns: int
    rank: int | None = None
    rank_from: re.Pattern[str] | None = None
    date_ns: int | None = None


@dataclass(slots=True)
class Plan:
    """A file and what was found out about it. `error`: nothing of it can be imported."""

    source: Source
    facts: PathFacts
    layers: tuple[Layer, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    dated_ns: int | None = None
    first_ns: int | None = None
    needs_date: bool = False  # has times without a year or a date
    rule: RankRule = field(default_factory=RankRule)
    anchor: Anchor = field(default_factory=lambda: Anchor(None, 0))
    copy: bool = False
    is_points: bool = False
    notes: list[str] = field(default_factory=list)
    error: str | None = None

    def profile(self, options: Options) -> Profile:
        """What the analysis of the whole file goes by."""
        arrival = min(self.source.mtime_ns, options.now_ns)
        return Profile(
            self.layers, self.rule, self.anchor, options.zone, self.first_ns, max(arrival, 0)
        )


def prepare(sources: list[Source], options: Options) -> list[Plan]:
    """A plan for each file."""
    plans = [_probe(source, options) for source in sources]
    good = [plan for plan in plans if plan.error is None]
    _decide_ranks(good, options)
    _decide_years(good, options)
    _find_copies(good)
    return plans


def _probe(source: Source, options: Options) -> Plan:
    plan = Plan(source, read_path(source.relative, source.key))
    try:
        if options.rank_from is not None:
            rank = match_rank(options.rank_from, source.name)
            rank = match_rank(options.rank_from, source.key) if rank is None else rank
            plan.facts = replace(plan.facts, rank=rank if rank is not None else plan.facts.rank)
        text = _beginning(source, PROBE_BYTES)
    except BadInput as error:
        plan.error = error.message
        return plan
    if is_points(text):
        plan.is_points = True
        return plan
    lines = decode_lines(text)
    plan.layers = find_layers(lines.text, lines.starts, lines.ends)
    peeled = peel(lines.text, lines.starts, lines.ends, plan.layers)
    stops = np.minimum(lines.ends, peeled.body_at + HEAD_WINDOW_BYTES)
    bodies = without_colours(slices(lines.text, peeled.body_at, stops))
    heads = Classifier().read(bodies)
    plan.evidence = gather_evidence(lines.text, bodies, peeled, heads)
    _note_clocks(plan, heads, options)
    dated = _dated(heads)
    plan.needs_date = len(dated.times) < len(heads.times)
    plan.dated_ns = _first_time(bodies, peeled, dated, options, Anchor(None, 0))
    return plan


def _beginning(source: Source, size: int) -> bytes:
    """The first bytes, cut at a line feed where there are more. Raises BadInput for no text."""
    blocks: list[bytes] = []
    read = 0
    try:
        for block in read_blocks(source):
            if not blocks:
                refuse_binary(source, block)
            blocks.append(block)
            read += len(block)
            if read >= size:
                break
    except BadInput:
        if not blocks:
            raise
    text = b"".join(blocks)
    cut = text.rfind(b"\n", 0, size) + 1
    return text[:cut] if len(text) > size and cut else text


def _note_clocks(plan: Plan, heads: Heads, options: Options) -> None:
    minutes = local_offset_of(heads)
    if minutes and options.zone == timezone.utc:
        plan.notes.append(
            f"times without a zone are {minutes / 60:+g} h from those with one in this file: "
            "give their zone with --tz"
        )


def _dated(heads: Heads) -> Heads:
    times = [group for group in heads.times if group.parsed.completeness == FULL]
    return replace(heads, times=times)


def _first_time(
    bodies: Any, peeled: Peeled, heads: Heads, options: Options, anchor: Anchor
) -> int | None:
    own = own_times(bodies, peeled, heads, options.zone, anchor)
    known = own[(own != NO_TIME) & (own <= options.now_ns + TIME_FUTURE_NS_MAX)]
    return int(known[0]) if len(known) else None


# --- ranks --------------------------------------------------------------------------------------
def _decide_ranks(plans: list[Plan], options: Options) -> None:
    _doubt_path_ranks(plans)
    trees: dict[str, list[Plan]] = defaultdict(list)
    for plan in plans:
        if plan.facts.tree is not None and plan.facts.local_rank is not None:
            trees[plan.facts.tree].append(plan)
    offsets = {
        tree: decide_tree_offset([(plan.facts, plan.evidence) for plan in members])
        for tree, members in trees.items()
    }
    for plan in plans:
        rank = plan.facts.rank if options.rank is None else options.rank
        if rank is None and plan.facts.local_rank is not None:
            rank = _rank_in_tree(plan, offsets.get(plan.facts.tree or ""))
        rule = decide_rule(plan.evidence, plan.notes)
        is_one = rank is not None or plan.facts.local_rank is not None
        plan.facts = replace(plan.facts, rank=rank)
        plan.rule = replace(rule, stream_rank=rank, one_process=is_one)


def _doubt_path_ranks(plans: list[Plan]) -> None:
    """`node0/rank0` beside `node1/rank0`: those are local ranks."""
    hosts: dict[tuple[int, str], set[str | None]] = defaultdict(set)
    for plan in plans:
        if plan.facts.rank is not None:
            hosts[plan.facts.rank, plan.facts.channel.rpartition("/")[2]].add(plan.facts.host)
    doubtful = any(len(names) > 1 for names in hosts.values())
    for plan in plans if doubtful else []:
        if plan.facts.rank is not None and plan.facts.host is not None:
            folder = plan.source.key.rpartition("/")[0]
            plan.facts = replace(
                plan.facts,
                rank=None,
                local_rank=plan.facts.rank,
                tree=f"{plan.facts.host} {folder}",
            )
            plan.notes.append(
                "the rank in the path is a node's local rank: another node has it too"
            )


def _rank_in_tree(plan: Plan, offset: int | None) -> int | None:
    local = plan.facts.local_rank
    rank = decide_stream_rank(plan.facts, plan.evidence)
    if rank is not None:
        plan.notes.append(f"rank {rank}: its lines say so")
        return rank
    if offset is not None and local is not None:
        plan.notes.append(f"rank {local + offset}: local rank {local} and its neighbours' lines")
        return local + offset
    plan.notes.append(f"local rank {local}, its rank is not known")
    return None


# --- years and first times ----------------------------------------------------------------------
def _decide_years(plans: list[Plan], options: Options) -> None:
    folders: dict[str, int] = {}
    for plan in plans:
        if plan.dated_ns is not None:
            folders.setdefault(plan.source.key.rpartition("/")[0], plan.dated_ns)
    for plan in plans:
        near = plan.dated_ns
        if near is None:
            near = folders.get(plan.source.key.rpartition("/")[0])
        written = min(plan.source.mtime_ns, options.now_ns)
        if options.date_ns is not None:
            plan.anchor = Anchor(options.date_ns, written, date_given=True)
        else:
            plan.anchor = Anchor(near, written)
        plan.first_ns = _first_of(plan, options) if plan.needs_date else plan.dated_ns


def _first_of(plan: Plan, options: Options) -> int | None:
    """The first time of a file, its year known now. Dated lines were found before."""
    lines = decode_lines(_beginning(plan.source, PROBE_BYTES))
    peeled = peel(lines.text, lines.starts, lines.ends, plan.layers)
    stops = np.minimum(lines.ends, peeled.body_at + HEAD_WINDOW_BYTES)
    bodies = without_colours(slices(lines.text, peeled.body_at, stops))
    return _first_time(bodies, peeled, Classifier().read(bodies), options, plan.anchor)


# --- copies -------------------------------------------------------------------------------------
def _find_copies(plans: list[Plan]) -> None:
    """A console with tee prefixes whose lines stand in the per-rank files of the same import."""
    trees = [plan for plan in plans if plan.facts.tree and plan.facts.local_rank is not None]
    consoles = [
        plan
        for plan in plans
        if plan.facts.local_rank is None and any(layer.name == "tee" for layer in plan.layers)
    ]
    if not trees or not consoles:
        return
    originals = [_bodies_behind(plan, ()) for plan in trees]
    values = pa.concat_arrays([array for array in originals if array is not None])
    for plan in consoles:
        said = _bodies_behind(plan, tuple(la for la in plan.layers if la.name != "rank_tag"))
        if said is None or not len(said):
            continue
        share = pc.mean(pc.is_in(said, value_set=values)).as_py() or 0.0
        if share >= _COPY_SHARE_MIN:
            plan.copy = True
            plan.notes.append(
                f"a copy of per-rank files: they have {share:.0%} of its tagged lines"
            )


def _bodies_behind(plan: Plan, layers: tuple[Layer, ...]) -> Any:
    """Lines of a file's beginning; of a console, those with a tee prefix, without it."""
    try:
        lines = decode_lines(_beginning(plan.source, _COPY_BYTES))
    except BadInput:
        return None
    peeled = peel(lines.text, lines.starts, lines.ends, layers)
    bodies = slices(lines.text, peeled.body_at, lines.ends)
    return (
        bodies.take(pa.array(peeled.rows.get("tee", np.empty(0, np.int64)))) if layers else bodies
    )
