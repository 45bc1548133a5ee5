"""An evidence bundle of a pin: its lines, how complete they are, the segments, and hashes of it all.

lines.…            every line that matches, in the format that was asked for
certificate.json   the question, its bounds, completeness then and now
segments.json      every segment in its scope: key, length, hash; whether its bytes have it today
SHA256SUMS         of these files, for `sha256sum --check`
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ranklog._version import VERSION
from ranklog.answer.render import completeness_json, render_time
from ranklog.client.answer import Listing
from ranklog.client.export import export_lines
from ranklog.client.pins import Pin
from ranklog.client.reader import Reader
from ranklog.errors import NotFound, RanklogError
from ranklog.layout import keys

SUMS = "SHA256SUMS"
_CHUNK_BYTES = 1 << 20


def export_pinned(reader: Reader, pin: Pin, out: Path, format: str) -> Listing:
    """Write the bundle below `out`, which must be new or empty. One row per file."""
    listing = export_lines(reader, pin.query, out, format, pin=pin)
    segments = [_segment(reader, *item) for item in pin.segments]
    _write(out / "segments.json", {"segments": segments})
    certificate = {
        "ranklog": VERSION,
        "pin": pin.to_json(),
        "launches": None if pin.launches is None else [f"{r}@{name}" for r, name in pin.launches],
        "bounds": {"from_ns": pin.from_ns, "to_ns": pin.to_ns, "defaulted": pin.defaulted},
        "streams": dict(sorted(pin.streams.items())),
        "completeness": {
            "pinned": pin.completeness,
            "now": completeness_json(listing.completeness),
        },
        "lines": sum(row["lines"] for row in listing.rows),
        "exported_ns": reader.now_ns(),
        "exported": render_time(reader.now_ns()),
    }
    _write(out / "certificate.json", certificate)
    names = [*(row["file"] for row in listing.rows), "certificate.json", "segments.json"]
    sums = "".join(f"{_sha256(out / name)}  {name}\n" for name in names)
    (out / SUMS).write_text(sums)
    for name in ("certificate.json", "segments.json", SUMS):
        listing.rows.append({"file": name, "lines": None, "bytes": (out / name).stat().st_size})
    return listing


def _segment(reader: Reader, key: str, length: int, digest: str, index: str) -> dict[str, Any]:
    """`state`: verified, altered, gone, or why it could not be read."""
    try:
        found = keys.hash_segment(reader.store.get(key))
        state = "verified" if found == digest else "altered"
    except NotFound:
        state = "gone"
    except RanklogError as error:
        state = error.message
    names = {"segment": key, "bytes": length, "blake2b_128": digest}
    return {**names, "index": index, "state": state}


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
