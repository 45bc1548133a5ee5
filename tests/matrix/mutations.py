"""Rules of the design broken on purpose, one at a time: a schedule must show each of them.

Each rule is a bold sentence of the design, of `docs/architecture.md`, `docs/storage-format.md` or
`docs/deletion.md`, or what a decision put in its place.
"""

from __future__ import annotations

from tests.matrix import broken_keeping, broken_reading, broken_writing
from tests.matrix.breaking import MUTATIONS

__all__ = ["MUTATIONS", "broken_keeping", "broken_reading", "broken_writing"]
