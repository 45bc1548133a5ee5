"""What a caller says beside query and restrictions: the shape of the answer, as one value.

`Client` has these as keyword arguments; backends pass them on whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from ranklog.client.words import check_shape, check_timeout, parse_every
from ranklog.errors import BadInput
from ranklog.limits import STATS_MAX


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """As in `Client.search`. `limit` None: none; `pin` True: keep, a text: the pin to ask again.

    Raises BadInput for a limit, order or time that can't be.
    """

    limit: int | None = None
    order: str | None = None
    cursor: str | None = None
    fields: tuple[str, ...] = ()
    context: int = 0
    groups: bool = True
    explain: bool = False
    full_scan: bool = False
    timeout_s: float | None = None
    pin: bool | str = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", check_shape(self.limit, self.order))
        check_timeout(self.timeout_s)


@dataclass(frozen=True, slots=True)
class CountOptions:
    """As in `Client.count`. `by` and `stats` as `field_names` gives them.

    Raises BadInput, BadQuery for numbers and buckets that can't be.
    """

    by: tuple[str, ...] = ()
    every: str | None = None
    top: int | None = None
    stats: tuple[str, ...] = ()
    explain: bool = False
    full_scan: bool = False
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        check_timeout(self.timeout_s)
        parse_every(self.every)
        if self.top is not None and (self.top < 1 or not self.by):
            raise BadInput(
                f"the {self.top} largest of no groups" if self.top > 0 else f"a top of {self.top}",
                hint="write --by FIELD --top 10",
            )
        if len(self.stats) > STATS_MAX:
            raise BadInput(f"numbers of {len(self.stats)} keys", hint=f"at most {STATS_MAX} keys")

    @property
    def buckets(self) -> tuple[int | None, int | None]:
        """(ns, iterations) of `every`."""
        return parse_every(self.every)
