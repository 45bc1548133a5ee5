"""Lines to compare, small."""

from __future__ import annotations

from ranklog.model.answer import Line


def line(
    text: str,
    *,
    rank: int | None = 0,
    seq: int = 0,
    ts_ns: int | None = None,
    iteration: int | None = None,
    site: str | None = None,
    run: str = "r",
    launch: str = "l",
    attempt: int = 0,
    level: int | None = None,
    metadata: dict[str, int | float | str] | None = None,
    body_at: int = 0,
) -> Line:
    """A line of a rank; time follows the sequence number, one millisecond each."""
    return Line(
        stream_id=f"{0 if rank is None else rank:032x}",
        seq=seq,
        ts_ns=seq * 1_000_000 if ts_ns is None else ts_ns,
        run=run,
        launch=launch,
        attempt=attempt,
        rank=rank,
        local_rank=rank,
        host=None if rank is None else f"gpu-{rank:02d}.cluster",
        channel="stdout",
        group=None,
        level=level,
        call_site=site,
        function=None,
        logger=None,
        text=text,
        iteration=iteration,
        metadata=metadata or {},
        body_at=body_at,
    )


def column(rank: int, *items: tuple[int | None, str] | str) -> list[Line]:
    """Lines of one rank: texts, or (iteration, text)."""
    pairs = [(None, item) if isinstance(item, str) else item for item in items]
    return [
        line(text, rank=rank, seq=seq, iteration=iteration)
        for seq, (iteration, text) in enumerate(pairs)
    ]
