"""One object to read with, over a store or over an HTTP API: the same calls, the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from ranklog import limits
from ranklog.client.answer import Answer, CountAnswer, Listing
from ranklog.client.options import CountOptions, SearchOptions
from ranklog.client.series_options import SeriesOptions, kinds_of
from ranklog.client.words import Restrictions, field_names, names_in
from ranklog.errors import BadInput
from ranklog.model.answer import Line
from ranklog.store.protocol import Store

if TYPE_CHECKING:
    from typing import Unpack

    from ranklog.client.outliers_answer import OutliersAnswer
    from ranklog.client.series_answer import SeriesAnswer
    from ranklog.client.slo import SloAnswer
    from ranklog.client.sql import SqlAnswer
    from ranklog.client.stacks_answer import StacksAnswer
    from ranklog.client.tail_items import TailItem, TailPage
    from ranklog.client.triage_answer import Triage
    from ranklog.scan.scatter import Invoker

# Lines per page where a caller walks through all of them.
PAGE_LINES = 10_000


class Backend(Protocol):
    """What a client asks of a store or an API. Times and sizes are as in Client."""

    def search(self, query: str, given: Restrictions, options: SearchOptions) -> Answer: ...

    def count(self, query: str, given: Restrictions, options: CountOptions) -> CountAnswer: ...

    def close(self) -> None: ...

    def runs(self, query: str, given: Restrictions, *, manifest: bool) -> Listing: ...

    def streams(self, given: Restrictions) -> Listing: ...

    def callsites(
        self,
        query: str,
        given: Restrictions,
        *,
        uneven: bool,
        every: str | None,
        full_scan: bool,
    ) -> Listing: ...

    def patterns(
        self,
        query: str,
        given: Restrictions,
        *,
        with_: str | None,
        limit: int | None,
        full_scan: bool,
    ) -> Listing: ...

    def compare(
        self,
        query: str,
        given: Restrictions,
        *,
        ranks: str | None,
        with_: str | None,
        all_hunks: bool,
        limit: int | None,
    ) -> Listing: ...

    def missing(self, query: str, given: Restrictions, *, by: str, everyone: bool) -> Listing: ...

    def outliers(self, query: str, given: Restrictions) -> OutliersAnswer: ...

    def series(self, query: str, given: Restrictions, options: SeriesOptions) -> SeriesAnswer: ...

    def stream_series(
        self, query: str, given: Restrictions, options: SeriesOptions
    ) -> Iterator[SeriesAnswer]: ...

    def triage(self, query: str, given: Restrictions) -> Triage: ...

    def stacks(self, query: str, given: Restrictions, *, thread: str) -> StacksAnswer: ...

    def slo(self, given: Restrictions) -> SloAnswer: ...

    def export(
        self, query: str, given: Restrictions, out: Path, format: str, pin: str | None
    ) -> Listing: ...

    def sql(self, statement: str, given: Restrictions, timeout_s: float | None) -> SqlAnswer: ...

    def tail(self, query: str, given: Restrictions) -> Iterator[TailItem]: ...

    def tail_page(
        self,
        query: str,
        given: Restrictions,
        *,
        cursor: str | None,
        wait_s: float,
        rows: int,
        watch: bool,
    ) -> TailPage: ...


class Client:
    """Reads one tenant of a store (a URL or a Store), or an API (its key names the tenant).

    Safe to use from many threads. Every call takes the restrictions of the command line: run, attempt,
    rank, host, level, iteration, since, until, last, tz; and `mute_common`, which leaves out what every
    rank says at the same rate. Raises RanklogError.

    `invoker` runs the scans of a store elsewhere (Lambda), `concurrency` of them at once, each for
    `seconds_left()` at most. `results_bytes`: memory for answers, given again to the same question
    while no index in its scope is new.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        api: str | None = None,
        tenant: str = "default",
        *,
        key: str | None = None,
        invoker: Invoker | None = None,
        concurrency: int | None = None,
        seconds_left: Callable[[], float] | None = None,
        results_bytes: int = 0,
    ) -> None:
        if (store is None) == (api is None):
            raise BadInput("a client reads a store or an API", hint="give store=… or api=…")
        self._backend: Backend
        if api is not None:
            from ranklog.client.remote import Remote

            self._backend = Remote(api, key)
        else:
            from ranklog.client.local import Local
            from ranklog.client.reader import local_reader

            opened = _opened(store)
            reader = local_reader(
                opened,
                tenant,
                invoker=invoker,
                concurrency=concurrency,
                seconds_left=seconds_left,
                results_bytes=results_bytes,
            )
            self._backend = Local(opened, tenant, reader)

    def close(self) -> None:
        """Cancel what other threads ask; every later call that scans raises Cancelled."""
        self._backend.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def search(
        self,
        query: str = "",
        *,
        limit: int | None = limits.QUERY_LIMIT_DEFAULT,
        order: str | None = None,
        cursor: str | None = None,
        fields: Sequence[str] = (),
        context: int = 0,
        groups: bool = True,
        explain: bool = False,
        full_scan: bool = False,
        timeout_s: float | None = None,
        pin: bool | str = False,
        **given: Unpack[Restrictions],
    ) -> Answer:
        """One page of lines. `limit` None or 0: no limit; `groups`: a match shows its group. After
        `timeout_s` the answer says what was not read, and its `next` page reads that, too. `pin`:
        keep what it looked at (`answer.pin["id"]`), or the id of a pin: that answer again, without
        what came later."""
        if isinstance(pin, str) and limit == limits.QUERY_LIMIT_DEFAULT:
            limit = None  # the pin has its own
        options = SearchOptions(
            limit=limit,
            order=order,
            cursor=cursor,
            fields=tuple(names_in(fields)),
            context=context,
            groups=groups,
            explain=explain,
            full_scan=full_scan,
            timeout_s=timeout_s,
            pin=pin,
        )
        return self._backend.search(query, given, options)

    def lines(
        self,
        query: str = "",
        *,
        order: str = "oldest",
        page: int = PAGE_LINES,
        full_scan: bool = False,
        **given: Unpack[Restrictions],
    ) -> Iterator[Line]:
        """Every matching line in order, page by page: memory holds one page."""
        cursor: str | None = None
        while True:
            answer = self.search(
                query,
                limit=page,
                order=order,
                cursor=cursor,
                groups=False,
                full_scan=full_scan,
                **given,
            )
            yield from answer.lines
            cursor = answer.next
            if cursor is None:
                return

    def count(
        self,
        query: str = "",
        *,
        by: str | Sequence[str] = (),
        every: str | None = None,
        top: int | None = None,
        stats: str | Sequence[str] = (),
        explain: bool = False,
        full_scan: bool = False,
        timeout_s: float | None = None,
        **given: Unpack[Restrictions],
    ) -> CountAnswer:
        """Matching lines, by fields, and by buckets of time (`10s`) or iterations (`100i`). `top`: only
        so many groups, those with the most lines. `stats`: of these numeric metadata keys, per group,
        count, min, max, mean (exact) and quantiles (within 1 % of the value)."""
        options = CountOptions(
            by=field_names(by),
            every=every,
            top=top,
            stats=field_names(stats),
            explain=explain,
            full_scan=full_scan,
            timeout_s=timeout_s,
        )
        return self._backend.count(query, given, options)

    def runs(
        self, query: str = "", *, manifest: bool = False, **given: Unpack[Restrictions]
    ) -> Listing:
        """Launches, newest first. The query asks for what manifests say: `owner:ada config.lr>0.1
        git.dirty:1`; `manifest`: rows with the whole manifest, of every rank and host."""
        return self._backend.runs(query, given, manifest=manifest)

    def streams(self, run: str | None = None, **others: Any) -> Listing:
        """Streams of a run, by rank and channel."""
        given = cast(Restrictions, others)
        if run is not None:
            given["run"] = run
        return self._backend.streams(given)

    def callsites(
        self,
        query: str = "",
        *,
        uneven: bool = False,
        every: str | None = None,
        full_scan: bool = False,
        **given: Unpack[Restrictions],
    ) -> Listing:
        """Who logs how much. `uneven` leaves out what all ranks say equally often, `mute_common` what
        they say at the same rate. `every`: lines by buckets of time (`10s`) or iterations (`100i`)."""
        return self._backend.callsites(
            query, given, uneven=uneven, every=every, full_scan=full_scan
        )

    def patterns(
        self,
        query: str = "",
        *,
        with_: str | None = None,
        limit: int | None = limits.QUERY_LIMIT_DEFAULT,
        full_scan: bool = False,
        **given: Unpack[Restrictions],
    ) -> Listing:
        """Templates of what matches, largest first, with an example each. `with_`: an earlier run
        (`NAME`, or `~1` for the launch before); `new` then tells what that one never said."""
        return self._backend.patterns(query, given, with_=with_, limit=limit, full_scan=full_scan)

    def compare(
        self,
        query: str = "",
        *,
        ranks: str | Sequence[int] | None = None,
        with_: str | None = None,
        all_hunks: bool = False,
        limit: int | None = limits.QUERY_LIMIT_DEFAULT,
        **given: Unpack[Restrictions],
    ) -> Listing:
        """Ranks of a run side by side, or of a run against another (`with_`): what changed in the
        manifests, one row per fact, then one row per hunk, the first `limit` of them."""
        shown = ranks if ranks is None or isinstance(ranks, str) else ",".join(map(str, ranks))
        return self._backend.compare(
            query, given, ranks=shown, with_=with_, all_hunks=all_hunks, limit=limit
        )

    def missing(
        self,
        query: str = "",
        *,
        by: str = "rank",
        everyone: bool = False,
        **given: Unpack[Restrictions],
    ) -> Listing:
        """Who did not say it: a row per rank, host or stream (`by`) with `said` `no`, or `unknown` and
        `why`: what it said may be in lines that are behind, in gaps, dropped, deleted, absent or not
        read. `everyone`: rows with `yes` as well."""
        return self._backend.missing(query, given, by=by, everyone=everyone)

    def outliers(self, query: str = "", **given: Unpack[Restrictions]) -> OutliersAnswer:
        """Every rank of a run's last attempt (`attempt`: of another) against the consensus of its
        peers: score, evidence, the group that explains the odd ones, a heat map. Needs numpy."""
        return self._backend.outliers(query, given)

    def series(
        self,
        query: str = "",
        *,
        by: str | Sequence[str] | None = None,
        every: str | None = None,
        aggregate: str | None = None,
        max_points: int | None = None,
        stat: str = "mean",
        detect: bool | str | Sequence[str] = False,
        superseded: bool = False,
        timeout_s: float | None = None,
        **given: Unpack[Restrictions],
    ) -> SeriesAnswer:
        """Series that match, such as `loss/* rank:0 layer:h.*`: a word names series, by their stable or
        their written name. Needs numpy and pyarrow.

        `by`: fold all but these fields (`rank`, `host`, `attempt`, dimensions) with `aggregate` (mean,
        min, max, spread, std, median, sum, count, last); `every`: also buckets of iterations (`100i`) or
        time (`10s`). `max_points` per series, None or 0: all, as what is computed from an answer should
        be; what is left out the answer says.
        `stat`: of tensors. `detect`: True, or some of spike, drift, plateau, nan. `superseded`: with
        iterations that a restart did again.
        """
        options = _series_options(
            by, every, aggregate, max_points, stat, detect, superseded, timeout_s
        )
        return self._backend.series(query, given, options)

    def stream_series(
        self,
        query: str = "",
        *,
        by: str | Sequence[str] | None = None,
        every: str | None = None,
        aggregate: str | None = None,
        max_points: int | None = limits.SERIES_POINTS_DEFAULT,
        stat: str = "mean",
        detect: bool | str | Sequence[str] = False,
        superseded: bool = False,
        timeout_s: float | None = None,
        **given: Unpack[Restrictions],
    ) -> Iterator[SeriesAnswer]:
        """The same in parts, each as soon as it is ready, series in a random order that is always the
        same: for dashboards that fill many plots. The last part has no series and the whole report."""
        options = _series_options(
            by, every, aggregate, max_points, stat, detect, superseded, timeout_s
        )
        return self._backend.stream_series(query, given, options)

    def triage(self, query: str = "", **given: Unpack[Restrictions]) -> Triage:
        """What happened to a run: class of failure, suspects with evidence, timeline, next steps.
        `attempt`: an earlier one than the last. A query leaves lines out of the evidence."""
        return self._backend.triage(query, given)

    def stacks(
        self, query: str = "", *, thread: str = "main", **given: Unpack[Restrictions]
    ) -> StacksAnswer:
        """Ranks by where their newest stack dumps (faulthandler's, py-spy's) say they stand, the odd
        ones first. `thread`: `main`, or `all` threads of a process."""
        return self._backend.stacks(query, given, thread=thread)

    def slo(
        self, *, since: str | None = None, until: str | None = None, tz: str = "UTC"
    ) -> SloAnswer:
        """ranklog's own objectives over a period (a month without one): freshness, completeness,
        durability, how long answers took and how whole they were, and what is left of the budgets."""
        return self._backend.slo({"since": since, "until": until, "tz": tz})

    def export(
        self,
        query: str = "",
        *,
        out: str | Path,
        format: str = "parquet",
        pin: str | None = None,
        **given: Unpack[Restrictions],
    ) -> Listing:
        """Write all matching lines below the folder `out`, or to an empty `s3://bucket/prefix`:
        parquet, jsonl, or text (the original bytes, a file per stream). One row per file that was
        written. `pin`: the lines of a pinned question, with certificate, segments and hashes."""
        from ranklog.client.destination import deliver

        return deliver(out, lambda into: self._backend.export(query, given, into, format, pin))

    def sql(
        self, statement: str, *, timeout_s: float | None = None, **given: Unpack[Restrictions]
    ) -> SqlAnswer:
        """DuckDB SQL over the views `lines` and `points`, read-only; run and bounds as in search.
        Raises TooLarge for a statement that takes longer than `timeout_s` (default: 120)."""
        return self._backend.sql(statement, given, timeout_s)

    def tail(self, query: str = "", **given: Unpack[Restrictions]) -> Iterator[TailItem]:
        """New lines from now on, for ever: each once, in order within its stream. A stream waits at
        a hole for at most 5 s; then an item says so, and what comes for it later is `late`."""
        return self._backend.tail(query, given)

    def tail_page(
        self,
        query: str = "",
        *,
        cursor: str | None = None,
        wait_s: float = limits.TAIL_WAIT_S_MAX,
        rows: int = limits.TAIL_PAGE_ROWS_MAX,
        watch: bool = False,
        **given: Unpack[Restrictions],
    ) -> TailPage:
        """One step of a tail: what became visible since the cursor, or since `wait_s` at the latest
        nothing. Without a cursor it begins now and answers at once.

        `watch`: only lines that name an iteration, a value or an error, and beside them `streams`:
        heartbeats, last iterations, ends. Without a cursor these are the newest `rows` lines."""
        return self._backend.tail_page(
            query, given, cursor=cursor, wait_s=wait_s, rows=rows, watch=watch
        )


def _series_options(
    by: str | Sequence[str] | None,
    every: str | None,
    aggregate: str | None,
    max_points: int | None,
    stat: str,
    detect: bool | str | Sequence[str],
    superseded: bool,
    timeout_s: float | None,
) -> SeriesOptions:
    return SeriesOptions(
        by=None if by is None else field_names(by),
        every=every,
        aggregate=aggregate,
        max_points=max_points,
        stat=stat,
        detect=kinds_of(detect),
        superseded=superseded,
        timeout_s=timeout_s,
    )


def _opened(store: str | Store | None) -> Store:
    from ranklog.store.open import open_store

    assert store is not None
    return open_store(store) if isinstance(store, str) else store
