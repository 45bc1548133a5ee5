"""RE2 over many texts without DuckDB: for roots of queries whose scans run elsewhere.

Arrow has the same library with the same options, so that a plan is the same wherever it is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from ranklog.errors import BadQuery
from ranklog.scan.fields import regex


def matches(pattern: str, flags: str, texts: Sequence[str]) -> list[bool]:
    """Whether each text has a match (plan/values.Regexes). Raises BadQuery with RE2's reason."""
    import pyarrow as pa  # most queries have no regex, and a cold start no time
    import pyarrow.compute as pc

    try:
        found = pc.match_substring_regex(
            pa.array([*texts, ""], pa.large_string()), regex(pattern, flags)
        )
    except pa.ArrowInvalid as error:
        raise BadQuery(
            f"RE2 can't run /{pattern}/: {str(error).partition('expression: ')[2] or error}",
            hint=f'to find it as text write "{pattern}"',
        ) from error
    hits: list[bool] = found.to_pylist()
    return hits[:-1]
