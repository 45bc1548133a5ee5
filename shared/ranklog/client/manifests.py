"""Manifests of launches: their names by LIST, and as many of their pieces as a question needs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from ranklog import limits
from ranklog.answer.manifests import Piece, declared_ranks, leading, merge
from ranklog.answer.runs import Told
from ranklog.client.catalog import Launch
from ranklog.client.side_by_side import side_by_side
from ranklog.errors import Corrupt, RanklogError
from ranklog.layout import keys
from ranklog.store.protocol import Store


@dataclass(slots=True)
class Manifests:
    """By run_id what was told; what could not be read, as warnings; and the bytes read."""

    told: dict[str, Told] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    bytes_read: int = 0


def load_manifests(
    store: Store, tenant: str, launches: Iterable[tuple[str, str]], *, whole: bool
) -> Manifests:
    """What the processes of these (run, launch) said; `whole`: every rank, not only the leading one."""
    wanted = sorted(set(launches))
    listed = side_by_side(lambda launch: _names(store, tenant, *launch), wanted)
    result = Manifests()
    chosen: list[tuple[str, str, keys.ManifestName]] = []
    for (run, launch), names in zip(wanted, listed, strict=True):
        picked = names if whole else leading(names)
        if len(picked) > limits.MANIFEST_PIECES_READ_MAX:
            result.warnings.append(
                f"{run}@{launch} has {len(picked)} pieces of a manifest, "
                f"read were {limits.MANIFEST_PIECES_READ_MAX}"
            )
            picked = sorted(picked)[-limits.MANIFEST_PIECES_READ_MAX :]
        chosen += [(run, launch, name) for name in picked]
    pieces: dict[tuple[str, str], list[Piece]] = {launch: [] for launch in wanted}
    read = side_by_side(lambda item: _read(store, tenant, *item), chosen)
    for (run, launch, name), found in zip(chosen, read, strict=True):
        if isinstance(found, str):
            result.warnings.append(found)
            continue
        result.bytes_read += len(found)
        with suppress(ValueError):  # ingest checked it; what others put there is not ours
            pieces[run, launch].append(Piece(name, json.loads(found)))
    for (run, launch), names in zip(wanted, listed, strict=True):
        manifest = merge(pieces[run, launch]) if pieces[run, launch] else {}
        result.told[f"{run}@{launch}"] = Told(manifest, declared_ranks(names))
    return result


def load_declared(
    store: Store, tenant: str, launches: Iterable[Launch]
) -> dict[tuple[str, str, int], frozenset[int]]:
    """Ranks that said anything of themselves, by (run, launch, attempt); by LIST, no piece is read."""
    return {
        (one.run, one.launch, attempt): ranks
        for one in launches
        for attempt, ranks in declared_ranks(_names(store, tenant, one.run, one.launch)).items()
    }


def _names(store: Store, tenant: str, run: str, launch: str) -> list[keys.ManifestName]:
    found = []
    for item in store.list(keys.manifests_prefix(tenant, run, launch)):
        with suppress(Corrupt):  # not ours: something else lies in the folder
            found.append(keys.parse_manifest_key(item.key))
    return found


def _read(store: Store, tenant: str, run: str, launch: str, name: keys.ManifestName) -> bytes | str:
    """The piece's bytes, or why not."""
    key = keys.manifest_key(tenant, run, launch, name)
    try:
        return store.get(key)
    except RanklogError as error:
        return f"a piece of the manifest could not be read: {error.message}"
