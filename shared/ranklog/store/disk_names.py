"""Keys as paths below a folder, both ways, for any key: pure.

A component of a key becomes one file name, readable where it can be:

- bytes other than ASCII letters, digits and `._%~@,+-`, and a leading dot, are `=XX`: nothing can
  leave the folder, and names with a leading dot are free for the store's own files; an empty
  component is `=-`;
- a folder's name with a dot, and an object's name without one, end in `=`: the object `a` and the
  folder of the object `a/b` never want the same name (`run.v2=/hours/05=`, `data/x.parquet`);
- past 200 characters a name goes on in a folder that ends in `=_`: file systems take 255.

Names that differ only in case need a file system that tells them apart.
"""

from __future__ import annotations

import re

MARKER = "ranklog-store.json"

_NAME_MAX = 200
_CONTINUED = "=_"
_EMPTY = "=-"
_ESCAPED = re.compile(rb"[^A-Za-z0-9._%~@,+-]|\A\.")
_ESCAPE = re.compile(rb"=([0-9A-F]{2})")


def folder_path(prefix: bytes) -> str:
    """The path of the folder of a prefix that is empty or ends in `/`."""
    return "/".join(_encode(part, folder=True) for part in prefix.split(b"/")[:-1])


def object_path(key: bytes) -> str:
    """The path of an object, relative to the store's folder."""
    folder, slash, name = key.rpartition(b"/")
    path = _encode(name, folder=False)
    if not slash:
        return path if path != MARKER else f"={ord(MARKER[0]):02X}{MARKER[1:]}"
    return f"{folder_path(folder + b'/')}/{path}"


def is_continued(name: str) -> bool:
    """Whether a folder's name is the beginning of a longer one."""
    return name.endswith(_CONTINUED)


def decode_name(name: str) -> bytes:
    """The bytes of a key's component, or of the part of it, that a file or folder stands for."""
    bare = name.removesuffix(_CONTINUED) if is_continued(name) else name.removesuffix("=")
    return (
        b""
        if bare == _EMPTY
        else _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), bare.encode())
    )


def is_ours(name: str, *, folder: bool) -> bool:
    """Whether a name can be one of a key's: people put notes and `.DS_Store` into folders."""
    if name.startswith("."):
        return False
    return (folder and is_continued(name)) or name.endswith("=") == (("." in name) == folder)


def _encode(component: bytes, *, folder: bool) -> str:
    text = _ESCAPED.sub(lambda match: b"=%02X" % match[0][0], component).decode() or _EMPTY
    parts = []
    while len(text) > _NAME_MAX:
        # Never cut inside an escape: its "=" is at most two characters before the cut.
        cut = text.find("=", _NAME_MAX - 2, _NAME_MAX)
        cut = _NAME_MAX if cut < 0 else cut
        parts.append(text[:cut] + _CONTINUED)
        text = _escape_dot(text[cut:])
    parts.append(text + "=" if ("." in text) == folder else text)
    return "/".join(parts)


def _escape_dot(text: str) -> str:
    return f"=2E{text[1:]}" if text.startswith(".") else text
