"""Secrets out of lines before they leave the node: each becomes `[masked:KIND]`.

One search over a whole batch of lines, in lower case, finds where a secret might be (literals, each
anchored on a letter that is rare in logs); expressions look only at the lines it names. What only
looks like a secret stays: `num_tokens=5`, `tokenizer=…`, `eos_token=</s>`, `password=None`.

Names of metadata count as the name of their value: metadata `api_key: "…"` is masked whole.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from ranklog import limits
from ranklog.agent.mask_patterns import (
    ASSIGNED,
    CALL,
    DETAILS,
    GATE,
    KEY_BEGIN,
    KEY_END,
    KEY_MASK,
    KINDS,
    LITERALS,
    PROSE,
    VOCABULARY,
    Detail,
    is_secret,
    kind_of_name,
    whole_name,
)
from ranklog.errors import BadRule

# Of a private key, this many lines behind its first are masked where no last one comes.
KEY_LINES_MAX = 200
RULES_MAX = 64


@dataclass(frozen=True, slots=True)
class MaskRule:
    """A rule of the user's: where `literal` occurs (in any case), `pattern` (group 1, else all)."""

    kind: str
    literal: bytes
    pattern: re.Pattern[bytes]


class Masker:
    """Masks lines and metadata. `counts`: secrets by kind, since it was made."""

    def __init__(self, rules: Sequence[MaskRule] = (), *, enabled: bool = True) -> None:
        self.enabled = enabled
        self.counts: Counter[str] = Counter()
        self._gate = GATE
        self._literals = (*LITERALS, *(rule.literal for rule in rules))
        custom = tuple(
            Detail(rule.kind, (rule.literal,), rule.pattern, min(1, rule.pattern.groups))
            for rule in rules
        )
        self._details = (*DETAILS, *custom)
        self._places = [
            (literal, place)
            for place, detail in enumerate(self._details)
            for literal in detail.literals
        ]
        self._secret_names: dict[str, str | None] = {}

    def lines(self, texts: list[bytes]) -> int:
        """Mask lines in place; how many changed."""
        if not self.enabled or not texts:
            return 0
        joined = b"\n".join(texts).lower()
        suspects = self._suspects(joined, texts)
        changed = 0
        for row in suspects:
            masked = self._line(texts[row])
            if masked != texts[row]:
                texts[row] = masked
                changed += 1
        return changed

    def text(self, text: bytes) -> bytes:
        """One text of one or several lines; private keys in it become one mask."""
        if not self.enabled:
            return text
        lowered = text.lower()
        if self._gate.search(lowered) is None and not any(x in lowered for x in self._literals):
            return text
        return self._line(self._without_keys(text))

    def metadata(self, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same, or a copy with masked string values."""
        for value in metadata.values():
            if type(value) is str:
                break
        else:
            return metadata
        if not self.enabled:
            return metadata
        masked = {}
        for name, value in metadata.items():
            if isinstance(value, str) and value:
                value = self._value(name, value)
            masked[name] = value
        return masked

    def _suspects(self, joined: bytes, texts: list[bytes]) -> list[int]:
        at = [match.start() for match in self._gate.finditer(joined)]
        for literal in self._literals:
            found = joined.find(literal)
            while found >= 0:
                at.append(found)
                found = joined.find(literal, found + 1)
        if not at:
            return []
        starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
        return sorted({bisect_right(starts, place) - 1 for place in at})

    def _line(self, text: bytes) -> bytes:
        lowered = text.lower()
        places = {place for literal, place in self._places if literal in lowered}
        for place in sorted(places):
            detail = self._details[place]
            text = detail.pattern.sub(self._replacing(detail), text)
        return ASSIGNED.sub(self._assigned, text)

    def _replacing(self, detail: Detail) -> Callable[[re.Match[bytes]], bytes]:
        def replaced(match: re.Match[bytes]) -> bytes:
            value = match[detail.group]
            if value is None or value.startswith(b"[masked:"):
                return match[0]
            if detail.name and VOCABULARY.search(match[detail.name]):
                return match[0]
            return self._replaced(match, detail.kind, detail.group)

        return replaced

    def _assigned(self, match: re.Match[bytes]) -> bytes:
        kind = next((kind for kind in KINDS if match[kind] is not None), None)
        if kind is None or not self._is_secret(kind, match):
            return match[0]
        return self._replaced(match, kind, "bare" if match["quote"] is None else "quoted")

    def _is_secret(self, kind: str, match: re.Match[bytes]) -> bool:
        text, end = match.string, match.end("name")
        name = whole_name(text, match.start("name"), end)
        if VOCABULARY.search(name):
            return False
        if match["quote"] is not None:
            cut_short = match["cut"] is not None
            if cut_short and not match["quoted"][:1].isalnum():
                return False  # `"password=", x`
            return is_secret(kind, name, match["quoted"])
        owned = kind == "password" and len(name) > len(match["name"])
        if not owned and PROSE.match(text, end):
            return False
        if kind in ("secret", "api_key") and CALL.match(text, end):
            return False
        return is_secret(kind, name, match["bare"], spoken=match["separator"].strip() == b":")

    def _replaced(self, match: re.Match[bytes], kind: str, group: int | str) -> bytes:
        self.counts[kind] += 1
        whole, start = match[0], match.start()
        return (
            whole[: match.start(group) - start]
            + b"[masked:%s]" % kind.encode()
            + whole[match.end(group) - start :]
        )

    def _without_keys(self, text: bytes) -> bytes:
        while begin := KEY_BEGIN.search(text):
            end = KEY_END.search(text, begin.end())
            text = text[: begin.start()] + KEY_MASK + (text[end.end() :] if end else b"")
            self.counts["private_key"] += 1
        return text

    def _value(self, name: str, value: str) -> str:
        if name not in self._secret_names:
            if len(self._secret_names) >= 4096:
                self._secret_names.clear()
            self._secret_names[name] = kind_of_name(name.encode("utf-8", "replace"))
        kind = self._secret_names[name]
        data = value.encode("utf-8", "surrogatepass")
        if kind is not None and is_secret(kind, name.encode("utf-8", "replace"), data):
            self.counts[kind] += 1
            return f"[masked:{kind}]"
        masked = self.text(data)
        return value if masked == data else masked.decode("utf-8", "surrogatepass")


class KeyBlocks:
    """Private keys over several lines of one stream. `left` is part of the stream's state."""

    def __init__(self, masker: Masker, left: int = 0) -> None:
        self._masker = masker
        self.left = left

    def lines(self, texts: list[bytes]) -> int:
        """Mask lines between a key's first and last in place; how many changed."""
        if not self._masker.enabled:
            return 0
        if not self.left and b"PRIVATE KEY" not in b"\n".join(texts):
            return 0
        changed = 0
        for row, text in enumerate(texts):
            begin, end = KEY_BEGIN.search(text), KEY_END.search(text)
            if not self.left and begin is None:
                continue
            if self.left == 0:
                self._masker.counts["private_key"] += 1
            self.left = 0 if end else KEY_LINES_MAX if begin else self.left - 1
            texts[row] = (text[: begin.start()] if begin else b"") + KEY_MASK
            changed += 1
        return changed


def load_rules(path: Path) -> tuple[MaskRule, ...]:
    """Rules of a JSON file: [{"kind": …, "literal": …, "pattern": …}, …]. Raises BadRule."""
    try:
        data = path.read_bytes()[: limits.RULE_FILE_BYTES_MAX + 1]
        items = json.loads(data)
        return tuple(_rule(item) for item in items[:RULES_MAX])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, re.error) as error:
        raise BadRule(
            f"{path} has no masking rules: {error}",
            hint='write [{"kind": "badge", "literal": "badge", "pattern": "badge=(\\\\w+)"}]',
        ) from error


def _rule(item: dict[str, str]) -> MaskRule:
    kind, literal = item["kind"], item["literal"].lower().encode()
    if not re.fullmatch(r"[a-z0-9_]{1,40}", kind) or not literal or b"\n" in literal:
        raise ValueError(f"kind {kind!r} or its literal is no plain word")
    pattern = item["pattern"].encode()
    if len(pattern) > limits.RULE_PATTERN_BYTES_MAX:
        raise ValueError(f"a pattern of {len(pattern)} bytes")
    return MaskRule(kind, literal, re.compile(pattern))
