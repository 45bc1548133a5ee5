"""The client's calls over the HTTP API, with the standard library."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranklog import errors, limits
from ranklog.client.answer import Answer, CountAnswer, Listing
from ranklog.client.options import CountOptions, SearchOptions
from ranklog.client.outliers_answer import OutliersAnswer
from ranklog.client.point_answer import PointPage
from ranklog.client.read_back import (
    read_completeness,
    read_item,
    read_line,
    read_report,
    read_value,
)
from ranklog.client.series_options import SeriesOptions
from ranklog.client.stacks_answer import StacksAnswer
from ranklog.client.tail_items import TailItem, TailPage
from ranklog.client.triage_answer import Triage
from ranklog.client.words import Restrictions, check_query, check_shape
from ranklog.spmd.watch.news import StreamNews

if TYPE_CHECKING:
    from ranklog.client.series_answer import SeriesAnswer
    from ranklog.client.slo import SloAnswer

TIMEOUT_S = 60.0
_KINDS: dict[str, type[errors.RanklogError]] = {
    cls.kind: cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, errors.RanklogError)
}


class Remote:
    """An API at `url`. The key is the argument's or `$RANKLOG_API_KEY`'s."""

    def __init__(self, url: str, key: str | None = None) -> None:
        scheme = urllib.parse.urlsplit(url).scheme
        if scheme not in ("http", "https"):
            raise errors.BadInput(f"{url} is no address of an API", hint="https://host[:port]")
        self._url = url.rstrip("/")
        self._key = key or os.environ.get("RANKLOG_API_KEY")

    def ask(self, method: str, path: str, words: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that the API answers. Raises what the problem says."""
        with self._answer(method, path, words) as answer:
            data = answer.read()
        return _object(data, self._url + path)

    @contextmanager
    def _answer(
        self, method: str, path: str, words: Mapping[str, Any], accept: str = "application/json"
    ) -> Iterator[Any]:
        """The response, to be read inside the block. Raises what the problem says."""
        if "query" in words:
            check_query(words["query"])
        given = {name: value for name, value in words.items() if value not in (None, (), [])}
        url, body = self._url + path, None
        headers = {"Accept": accept}
        if method == "POST":
            body = json.dumps(given).encode()
            headers["Content-Type"] = "application/json"
        elif given:
            url += "?" + urllib.parse.urlencode({k: _plain(v) for k, v in given.items()})
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(url, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                yield answer
        except urllib.error.HTTPError as error:
            with error:
                problem = _problem(error.code, error.read())
                wait_s = error.headers.get("Retry-After") or ""
                if isinstance(problem, errors.OverQuota) and wait_s.isdecimal():
                    problem.retry_after_s = int(wait_s)
                raise problem from error
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            cause = getattr(error, "reason", error)
            why = getattr(cause, "strerror", None) or cause
            raise errors.Unavailable(
                f"{self._url} does not answer: {why}", hint="check the address, or try again"
            ) from error

    def search(self, query: str, given: Restrictions, options: SearchOptions) -> Answer:
        wanted, order, pin = options.limit, options.order, options.pin
        words: dict[str, Any] = {
            **given,
            "query": query,
            "limit": None if isinstance(pin, str) and wanted is None else wanted or 0,
            "order": order,
            "cursor": options.cursor,
            "context": options.context or None,
            "explain": options.explain or None,
            "full_scan": options.full_scan or None,
            "timeout": options.timeout_s,
            "pin": pin or None,
        }
        fields = options.fields
        answer = self._page(words, fields)
        kept = answer.pin
        if kept is not None:  # its pages are those of the pin
            wanted, order = kept["limit"], kept["order"]
            words = {"pin": kept["id"], "timeout": options.timeout_s}
        while _goes_on(answer) and (wanted is None or len(answer.matches) < wanted):
            # a page is cut at what fits into a response
            words |= {"cursor": answer.next}
            words |= {"limit": 0 if wanted is None else wanted - len(answer.matches)}
            following = self._page(words, fields)
            turned = order is None  # the newest are kept and stand last
            pages = [following, answer] if turned else [answer, following]
            following.lines = [line for page in pages for line in page.lines]
            answer = following
        answer.pin = kept
        if not options.groups:
            answer.lines = answer.matches
        return answer

    def _page(self, words: Mapping[str, Any], fields: tuple[str, ...]) -> Answer:
        found = self.ask("POST", "/v1/search", words)
        if "points" in found:
            return PointPage(
                completeness=read_completeness(found["completeness"]),
                report=read_report(found["report"]),
                truncated=found["truncated"],
                fields=fields,
                points=found["points"],
            )
        return Answer(
            [read_line(item) for item in found["lines"]],
            read_completeness(found["completeness"]),
            read_report(found["report"]),
            found["next"],
            found["truncated"],
            fields,
            found.get("explain"),
            found.get("pin"),
        )

    def count(self, query: str, given: Restrictions, options: CountOptions) -> CountAnswer:
        words: dict[str, Any] = {
            **given,
            "query": query,
            "by": list(options.by),
            "every": options.every,
            "top": options.top,
            "stats": list(options.stats),
            "explain": options.explain or None,
            "full_scan": options.full_scan or None,
            "timeout": options.timeout_s,
        }
        found = self.ask("POST", "/v1/count", words)
        fields, every = options.by, options.every
        if every:
            fields = (*fields, "bucket_iteration" if every.endswith("i") else "bucket_ns")
        groups = found.get("groups", ())
        rows = [
            (tuple(read_value(name, group[name]) for name in fields), group["count"])
            for group in groups
        ]
        return CountAnswer(
            fields,
            rows if fields else [((), found["count"])],
            read_completeness(found["completeness"]),
            read_report(found["report"]),
            found.get("explain"),
            found["count"],
            _stats(found, fields) if options.stats else None,
        )

    def missing(self, query: str, given: Restrictions, *, by: str, everyone: bool) -> Listing:
        words: dict[str, Any] = {**given, "query": query, "by": by, "all": everyone or None}
        return self._listing("POST", "/v1/missing", "missing", words)

    def close(self) -> None:
        """Nothing runs here."""

    def runs(self, query: str, given: Restrictions, *, manifest: bool) -> Listing:
        words = {**given, "query": query, "manifest": manifest or None}
        return self._listing("GET", "/v1/runs", "runs", words)

    def streams(self, given: Restrictions) -> Listing:
        words = dict(given)
        run = words.pop("run", None)
        if not run:
            raise errors.BadInput("streams of which run?", hint="name it")
        path = f"/v1/runs/{urllib.parse.quote(str(run), safe='')}/streams"
        return self._listing("GET", path, "streams", words)

    def callsites(
        self,
        query: str,
        given: Restrictions,
        *,
        uneven: bool,
        every: str | None,
        full_scan: bool,
    ) -> Listing:
        words = {**given, "query": query, "uneven": uneven or None, "every": every}
        words |= {"full_scan": full_scan or None}
        return self._listing("GET", "/v1/callsites", "callsites", words)

    def patterns(
        self,
        query: str,
        given: Restrictions,
        *,
        with_: str | None,
        limit: int | None,
        full_scan: bool,
    ) -> Listing:
        most = check_shape(limit, None)
        words = {**given, "query": query, "with": with_, "limit": most or 0}
        words |= {"full_scan": full_scan or None}
        return self._listing("GET", "/v1/patterns", "patterns", words)

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
        words = {**given, "query": query, "ranks": ranks, "with": with_, "all": all_hunks or None}
        words |= {"limit": check_shape(limit, None) or 0}
        return self._listing("POST", "/v1/compare", "hunks", words)

    def outliers(self, query: str, given: Restrictions) -> OutliersAnswer:
        found = self.ask("POST", "/v1/outliers", {**given, "query": query})
        completeness = read_completeness(found["completeness"])
        report = read_report(found["report"])
        return OutliersAnswer(found["outliers"], found["summary"], completeness, report)

    def series(self, query: str, given: Restrictions, options: SeriesOptions) -> SeriesAnswer:
        from ranklog.client.series_json import joined_answers, read_answer, series_words

        words: dict[str, Any] = {**given, "query": query, **series_words(options)}
        parts: list[SeriesAnswer] = []
        while not parts or parts[-1].next is not None:
            words |= {"cursor": parts[-1].next if parts else None}
            parts.append(read_answer(self.ask("POST", "/v1/series", words)))
        return joined_answers(parts)

    def stream_series(
        self, query: str, given: Restrictions, options: SeriesOptions
    ) -> Iterator[SeriesAnswer]:
        """Line by line as `ranklog serve` sends them; of a deployed API page by page."""
        from ranklog.client.series_json import read_answer, read_part, series_words

        words: dict[str, Any] = {**given, "query": query, **series_words(options)}
        while True:
            found: dict[str, Any] = {}
            for found in self._rows("/v1/series", words):
                if "series" in found:
                    yield read_part(found, options)
            if "report" not in found:
                raise errors.Unavailable("the answer broke off", hint="try again")
            words |= {"cursor": found["next"]}
            if found["next"] is None:
                yield read_answer({**found, "series": []})
                return

    def _rows(self, path: str, words: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The objects of an answer that comes a line each. Raises what a problem among them says."""
        with self._answer("POST", path, words, "application/x-ndjson") as answer:
            for line in answer:
                found = _object(line, self._url + path)
                if "problem" in found:
                    raise _problem(
                        found["problem"]["status"], json.dumps(found["problem"]).encode()
                    )
                yield found

    def triage(self, query: str, given: Restrictions) -> Triage:
        found = self.ask("POST", "/v1/triage", {**given, "query": query})
        completeness = read_completeness(found.pop("completeness"))
        return Triage(found, completeness, read_report(found.pop("report")))

    def stacks(self, query: str, given: Restrictions, *, thread: str) -> StacksAnswer:
        found = self.ask("POST", "/v1/stacks", {**given, "query": query, "thread": thread})
        completeness = read_completeness(found["completeness"])
        return StacksAnswer(
            found["groups"], found["missing"], completeness, read_report(found["report"])
        )

    def slo(self, given: Restrictions) -> SloAnswer:
        from ranklog.client.slo import read_slo

        return read_slo(self.ask("GET", "/v1/slo", given))

    def export(
        self, query: str, given: Restrictions, out: Path, format: str, pin: str | None
    ) -> Listing:
        if pin is not None:
            raise errors.BadInput("a pin is exported from a store", hint="give store=…")
        from ranklog.client.pages import export_pages

        return export_pages(self, query, given, out, format)

    def tail(self, query: str, given: Restrictions) -> Iterator[TailItem]:
        rows = limits.TAIL_PAGE_ROWS_MAX
        begun = self.tail_page(query, given, cursor=None, wait_s=0, rows=rows, watch=False)
        return self._tail_from(query, given, begun.next)

    def _tail_from(self, query: str, given: Restrictions, cursor: str) -> Iterator[TailItem]:
        missed = 0
        while True:
            try:
                page = self.tail_page(
                    query,
                    given,
                    cursor=cursor,
                    wait_s=limits.TAIL_WAIT_S_MAX,
                    rows=limits.TAIL_PAGE_ROWS_MAX,
                    watch=False,
                )
            except errors.RanklogError as error:
                missed += 1
                if not error.retryable or missed > limits.TAIL_TRIES_MAX:
                    raise
                time.sleep(0.25 * 2**missed)
                continue
            missed, cursor = 0, page.next
            yield from page.items

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
        words = {**given, "query": query, "cursor": cursor, "wait": wait_s, "limit": rows}
        found = self.ask("GET", "/v1/tail", words | {"watch": watch or None})
        items = [read_item(item) for item in found["items"]]
        news = [StreamNews(**item) for item in found["streams"]] if watch else None
        return TailPage(items, found["next"], news)

    def sql(self, statement: str, given: Restrictions, timeout_s: float | None) -> Any:
        raise errors.BadInput("sql works on a store, not through an API", hint="name the store")

    def _listing(self, method: str, path: str, name: str, words: dict[str, Any]) -> Listing:
        found = self.ask(method, path, words)
        return Listing(
            found[name], read_completeness(found["completeness"]), read_report(found["report"])
        )


def _goes_on(answer: Answer) -> bool:
    """Whether a page was cut only because it did not fit; one that ran out of time is the answer."""
    return answer.next is not None and answer.truncated and not answer.completeness.skipped_tasks


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _object(data: bytes, url: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError as error:
        raise errors.Corrupt(f"{url} answered no JSON") from error
    if not isinstance(found, dict):
        raise errors.Corrupt(f"{url} answered no JSON object")
    return found


def _problem(status: int, data: bytes) -> errors.RanklogError:
    """The error behind a problem document; by status where there is none."""
    try:
        found = json.loads(data)
        # what a gateway in front of the API says has a message alone
        said = found.get("detail") or found.get("title") or found.get("message")
        message = str(said or f"the API answered {status}")
        hint, kind, position = found.get("hint"), found.get("kind"), found.get("position")
    except (ValueError, AttributeError):
        message, hint, kind, position = f"the API answered {status}", None, None, None
    cls = _KINDS.get(str(kind)) or _by_status(status)
    if kind is None and status in (401, 403):
        hint = hint or "is the key in RANKLOG_API_KEY known there, and still valid?"
    return cls(message, hint=hint, position=position)


def _by_status(status: int) -> type[errors.RanklogError]:
    if status in (401, 403):
        return errors.BadInput
    fitting = (cls for cls in _KINDS.values() if cls.http_status == status)
    fallback = errors.Unavailable if status >= 500 else errors.BadInput
    return next(fitting, fallback)


def _stats(found: Mapping[str, Any], fields: Sequence[str]) -> list[dict[str, Any]]:
    """The numbers of each group, or of the only one."""
    if fields:
        return [group["stats"] for group in found.get("groups", ())]
    return [found.get("stats") or {}]
