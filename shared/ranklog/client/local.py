"""The client's calls over a store. What a search does not need is imported by the calls that do: a command
is a process that mostly makes one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranklog.client.answer import Answer, CountAnswer, Listing
from ranklog.client.options import CountOptions, SearchOptions
from ranklog.client.pins import load_pin, refuse_words
from ranklog.client.reader import Reader, local_reader
from ranklog.client.search import search
from ranklog.client.words import Restrictions, check_shape, parse_every, read_query
from ranklog.errors import BadInput, Unavailable
from ranklog.model.query import Query
from ranklog.store.protocol import Store

if TYPE_CHECKING:
    from ranklog.client.outliers_answer import OutliersAnswer
    from ranklog.client.series_answer import SeriesAnswer
    from ranklog.client.series_options import SeriesOptions
    from ranklog.client.slo import SloAnswer
    from ranklog.client.stacks_answer import StacksAnswer
    from ranklog.client.tail_items import TailItem, TailPage
    from ranklog.client.triage_answer import Triage


class Local:
    """Reads one tenant of a store; tasks run in this process unless the reader says otherwise."""

    def __init__(self, store: Store, tenant: str, reader: Reader | None = None) -> None:
        self.reader = reader or local_reader(store, tenant)

    def _query(self, text: str, given: Restrictions, **shape: Any) -> Query:
        return read_query(text, given, now_ns=self.reader.now_ns(), **shape)

    def search(self, query: str, given: Restrictions, options: SearchOptions) -> Answer:
        if isinstance(options.pin, str):
            return replace(self._pinned(options.pin, query, given, options), fields=options.fields)
        if options.pin and given.get("mute_common"):
            raise BadInput("a muted answer can't be pinned", hint="leave out --mute-common")
        asked = self._query(
            query,
            given,
            limit=options.limit,
            order=options.order,
            cursor=options.cursor,
            context=options.context,
            explain=options.explain,
            full_scan=options.full_scan,
            timeout_s=options.timeout_s,
        )
        if asked.kind == "point":
            return self._points(asked, options)
        answer = search(self.reader, asked, groups=options.groups, keep=options.pin)
        return replace(answer, fields=options.fields)

    def _points(self, asked: Query, options: SearchOptions) -> Answer:
        if options.pin or options.explain:
            raise BadInput("points are neither pinned nor explained", hint="leave that out")
        with _needing_arrays():
            from ranklog.client.point_page import search_page
        return search_page(self.reader, asked, options.fields)

    def _pinned(self, name: str, query: str, given: Restrictions, options: SearchOptions) -> Answer:
        """A pinned search again, or its next page; `limit` can only make a page shorter."""
        refuse_words(query, given)
        pin = load_pin(self.reader, name)
        lengths = [most for most in (options.limit, pin.query.limit) if most is not None]
        asked = replace(
            pin.query,
            limit=min(lengths, default=None),
            cursor=options.cursor,
            timeout_s=options.timeout_s,
        )
        return search(self.reader, asked, groups=pin.groups, pin=pin)

    def count(self, query: str, given: Restrictions, options: CountOptions) -> CountAnswer:
        every_ns, every_iterations = options.buckets
        asked = self._query(
            query,
            given,
            by=options.by,
            every_ns=every_ns,
            every_iterations=every_iterations,
            top=options.top,
            stats=options.stats,
            count=True,
            explain=options.explain,
            full_scan=options.full_scan,
            timeout_s=options.timeout_s,
        )
        from ranklog.client.counting import count

        if asked.kind == "point":
            with _needing_arrays():
                from ranklog.client.point_page import count_points
            return count_points(self.reader, asked)
        return count(self.reader, asked)

    def close(self) -> None:
        self.reader.close()

    def runs(self, query: str, given: Restrictions, *, manifest: bool) -> Listing:
        from ranklog.client.listings import list_runs

        return list_runs(self.reader, self._query(query, given), manifest=manifest)

    def streams(self, given: Restrictions) -> Listing:
        from ranklog.client.listings import list_streams

        return list_streams(self.reader, self._query("", given))

    def callsites(
        self,
        query: str,
        given: Restrictions,
        *,
        uneven: bool,
        every: str | None,
        full_scan: bool,
    ) -> Listing:
        every_ns, every_iterations = parse_every(every)
        asked = self._query(
            query,
            given,
            full_scan=full_scan,
            every_ns=every_ns,
            every_iterations=every_iterations,
        )
        from ranklog.client.listings import list_callsites

        return list_callsites(self.reader, asked, uneven=uneven)

    def patterns(
        self,
        query: str,
        given: Restrictions,
        *,
        with_: str | None,
        limit: int | None,
        full_scan: bool,
    ) -> Listing:
        from ranklog.client.patterns import list_patterns

        most = check_shape(limit, None)
        asked = self._query(query, given, full_scan=full_scan)
        return list_patterns(self.reader, asked, with_=with_, limit=most)

    def compare(
        self,
        query: str,
        given: Restrictions,
        *,
        ranks: str | None,
        with_: str | None,
        all_hunks: bool,
        limit: int | None,
    ) -> Listing:
        from ranklog.client.comparison import compare_ranks

        return compare_ranks(
            self.reader,
            query,
            given,
            ranks=ranks,
            with_=with_,
            all_hunks=all_hunks,
            limit=check_shape(limit, None),
        )

    def missing(self, query: str, given: Restrictions, *, by: str, everyone: bool) -> Listing:
        from ranklog.client.missing import checked_by, list_missing

        asked = self._query(query, given, by=("run_id", checked_by(by)), count=True)
        return list_missing(self.reader, asked, by=by, everyone=everyone)

    def outliers(self, query: str, given: Restrictions) -> OutliersAnswer:
        try:
            from ranklog.client.outliers import outliers_of
        except ModuleNotFoundError as error:
            raise Unavailable(
                f"outliers need {error.name}, which is not installed here",
                hint="ask a store: pip install 'ranklog[engine]'",
            ) from error
        return outliers_of(self.reader, query, given)

    def series(self, query: str, given: Restrictions, options: SeriesOptions) -> SeriesAnswer:
        with _needing_arrays():
            from ranklog.client.series import read_series
        asked = self._query(query, given, series=True, timeout_s=options.timeout_s)
        return read_series(self.reader, asked, options)

    def stream_series(
        self, query: str, given: Restrictions, options: SeriesOptions
    ) -> Iterator[SeriesAnswer]:
        with _needing_arrays():
            from ranklog.client.series import stream_series
        asked = self._query(query, given, series=True, timeout_s=options.timeout_s)
        return stream_series(self.reader, asked, options)

    def triage(self, query: str, given: Restrictions) -> Triage:
        from ranklog.client.triage import triage_run

        return triage_run(self.reader, query, given)

    def stacks(self, query: str, given: Restrictions, *, thread: str) -> StacksAnswer:
        from ranklog.client.stacks import stacks_of

        return stacks_of(self.reader, query, given, thread=thread)

    def slo(self, given: Restrictions) -> SloAnswer:
        from ranklog.client.slo import answer_slo

        return answer_slo(self.reader, self._query("", given))

    def export(
        self, query: str, given: Restrictions, out: Path, format: str, pin: str | None
    ) -> Listing:
        # DuckDB and Arrow in one process, which functions on AWS have not.
        from ranklog.client.export import export_lines

        if pin is None:
            asked = self._query(query, given)
            if asked.kind == "point":
                from ranklog.client.point_export import export_points

                return export_points(self.reader, asked, out, format)
            return export_lines(self.reader, asked, out, format)
        from ranklog.client.evidence import export_pinned

        refuse_words(query, given)
        return export_pinned(self.reader, load_pin(self.reader, pin), out, format)

    def tail(self, query: str, given: Restrictions) -> Iterator[TailItem]:
        from ranklog.client.tail import Tail

        # what is committed after this call is shown, however late the first item is asked for
        return Tail(self.reader, self._query(query, given)).follow()

    def tail_page(
        self,
        query: str,
        given: Restrictions,
        *,
        cursor: str | None,
        wait_s: float,
        rows: int,
        watch: bool,
    ) -> TailPage:
        from ranklog.client.tail_cursor import tail_page

        asked = self._query(query, given)
        if watch:
            from ranklog.client.watched import watch_page

            return watch_page(self.reader, asked, cursor, wait_s=wait_s, rows=rows)
        return tail_page(self.reader, asked, cursor, wait_s=wait_s, rows=rows)

    def sql(self, statement: str, given: Restrictions, timeout_s: float | None) -> Any:
        from ranklog.client.sql import run_sql
        from ranklog.client.words import check_query, check_timeout

        check_query(statement, hint="a text: one SELECT")
        query = self._query("", given, timeout_s=check_timeout(timeout_s))
        return run_sql(self.reader, statement, query)


@contextmanager
def _needing_arrays() -> Iterator[None]:
    """Raises Unavailable where numpy or pyarrow is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"series need {error.name}, which is not installed here",
            hint="ask a store: pip install 'ranklog[engine]'",
        ) from error
