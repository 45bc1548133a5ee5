"""What RE2 refuses on principle, found before anything is compiled or read."""

from __future__ import annotations

import re

_LOOK_AROUND = {
    "(?=": "look-ahead (?=…)",
    "(?!": "look-ahead (?!…)",
    "(?<=": "look-behind (?<=…)",
    "(?<!": "look-behind (?<!…)",
    "(?>": "an atomic group (?>…)",
}
_CONSTRUCT = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\(?P<back>[1-9])|\\k[<{'](?P<named>\w+)|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]?"
    r"|(?P<look>\(\?(?:[=!>]|<[=!]))|.",
    re.DOTALL,
)


def refused_construct(pattern: str) -> str | None:
    """Name of the first look-around or back-reference; None if there is none."""
    for found in _CONSTRUCT.finditer(pattern):
        if found["look"]:
            return _LOOK_AROUND[found["look"]]
        if found["back"]:
            return f"the back-reference \\{found['back']}"
        if found["named"]:
            return f"the back-reference to {found['named']}"
    return None
