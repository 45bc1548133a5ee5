"""What an import stored and no index has any more is missing, not unsaid."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranklog.client import Client
from ranklog.importer import import_paths
from ranklog.importer.report import ImportReport
from ranklog.layout.keys import imports_prefix
from ranklog.store.memory import MemoryStore

TENANT = "default"
NOW_NS = 1_777_600_000_000_000_000  # 2026-05-01


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def imported(store: MemoryStore, folder: Path, **files: str) -> ImportReport:
    """Each file an import of its own, so that each has an index of its own."""
    for name, text in files.items():
        path = folder / f"{name}.log"
        path.write_text(text)
        report = import_paths([str(path)], store=store, tenant=TENANT, run="r", now_ns=NOW_NS)
        assert report.files[0].error is None
    return report


def indexes(store: MemoryStore) -> list[str]:
    return [item.key for item in store.list(f"{TENANT}/index/")]


def lose(store: MemoryStore, names: list[str]) -> None:
    for name in names:
        store.delete(name)


def hour(at: int) -> str:
    return f"2026-04-{at:02d} 10:00:00 INFO step 1\n2026-04-{at:02d} 10:00:01 INFO step 2\n"


def test_a_file_of_which_every_index_is_gone_is_a_gap(store: MemoryStore, tmp_path: Path) -> None:
    imported(store, tmp_path, a=hour(1), b=hour(2))
    assert Client(store=store).count("", run="r").completeness.state == "complete"
    lost, kept = indexes(store)
    lose(store, [lost])
    answer = Client(store=store).search("INFO", run="r")
    assert (len(answer.lines), answer.completeness.state) == (2, "gaps")
    [gap] = answer.completeness.gaps
    assert (gap["first_seq"], gap["last_seq"]) == (0, 1)
    lose(store, [kept])
    assert len(Client(store=store).search("INFO", run="r").completeness.gaps) == 2


def test_only_what_lies_in_the_time_of_the_question_is_missed(
    store: MemoryStore, tmp_path: Path
) -> None:
    imported(store, tmp_path, a=hour(1), b=hour(2))
    lose(store, indexes(store)[:1])
    asked = Client(store=store)
    states = [
        asked.search("", run="r", since=f"2026-04-{day}", until=f"2026-04-{day}T12").completeness
        for day in ("01", "02")
    ]
    assert [judged.state for judged in states] == ["gaps", "complete"]


def test_the_tail_of_a_file_that_grew_is_missed(store: MemoryStore, tmp_path: Path) -> None:
    imported(store, tmp_path, a=hour(1))
    before = set(indexes(store))
    imported(store, tmp_path, a=hour(1) + hour(2))
    lose(store, [key for key in indexes(store) if key not in before])
    [gap] = Client(store=store).search("", run="r").completeness.gaps
    assert (gap["first_seq"], gap["last_seq"]) == (2, 3)


def test_an_empty_file_is_missed_by_nobody(store: MemoryStore, tmp_path: Path) -> None:
    imported(store, tmp_path, a=hour(1), b="")
    assert Client(store=store).search("", run="r").completeness.state == "complete"


def test_files_of_points_are_missed_by_questions_for_points(
    store: MemoryStore, tmp_path: Path
) -> None:
    with pytest.importorskip("tensorboardX").SummaryWriter(str(tmp_path / "logs")) as writer:
        writer.add_scalar("x", 1.0, 0)
    import_paths([str(tmp_path / "logs")], store=store, tenant=TENANT, run="r", now_ns=NOW_NS)
    imported(store, tmp_path, a=hour(1))
    lose(store, [key for key in indexes(store) if "/point." in key])
    asked = Client(store=store)
    assert asked.search("", run="r").completeness.state == "complete"
    assert asked.search("kind:point", run="r").completeness.state == "gaps"


def test_a_record_that_cannot_be_read_is_named(store: MemoryStore, tmp_path: Path) -> None:
    imported(store, tmp_path, a=hour(1))
    [name] = [
        item.key
        for item in store.list(imports_prefix(TENANT, "r", "import"))
        if item.key.endswith(".done.json")
    ]
    store._objects[name] = (b"{", store._objects[name][1])
    judged = Client(store=store).search("", run="r").completeness
    assert (judged.state, [item["segment"] for item in judged.skipped_tasks]) == ("partial", [name])
