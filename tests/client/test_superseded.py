"""What was said of iterations that were done again after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ranklog.answer.render import line_json
from ranklog.client import Client
from ranklog.importer import import_paths
from ranklog.store.memory import MemoryStore
from tests.corpus_lines import Corpus
from tests.ingest.frames import T0, Row, stream
from tests.lineage_lines import LOADED, SECOND, random_job, superseded


def client_of(corpus: Corpus, *, twice: bool = False) -> Client:
    store = MemoryStore()
    corpus.ingest(store, twice=twice)
    return Client(store=store, tenant="acme")


def found(client: Client, query: str, **given: object) -> set[str]:
    answer = client.search(query, limit=None, groups=False, run="llama", **given)  # type: ignore[arg-type]
    assert answer.completeness.skipped_tasks == []
    return {line.id for line in answer.lines}


@settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.generate])
@given(seed=st.integers(0, 2**32), twice=st.booleans())
def test_pruned_answers_equal_full_scans_and_the_oracle(seed: int, twice: bool) -> None:
    corpus = random_job(seed)
    client = client_of(corpus, twice=twice)
    gone, everything = superseded(corpus.lines), {line.id for line in corpus.lines}
    for full in (False, True):
        assert found(client, "superseded:true", full_scan=full) == gone
        assert found(client, "superseded:false", full_scan=full) == everything - gone
        assert found(client, "NOT superseded:true rank:0", full_scan=full) == {
            line.id for line in corpus.lines if line.rank == 0 and line.id not in gone
        }
    assert client.count("superseded:true", run="llama").count == len(gone)
    lines = client.search("*", limit=None, run="llama").lines
    assert {line.id for line in lines if line.superseded} == gone


def overlapping() -> Corpus:
    """Attempt 0 does 0 to 130, the checkpoint is of 100, attempt 1 goes on with 101."""
    corpus, ts = Corpus(), T0
    for attempt, iterations in enumerate((range(131), range(101, 111))):
        rows = [Row("starts", ts=ts, stream=stream(0, attempt=attempt))]
        for iteration in iterations:
            ts += SECOND
            rows.append(Row("step", ts=ts, stream=stream(0, attempt=attempt), iteration=iteration))
            rows.append(Row("words", ts=ts, stream=stream(0, attempt=attempt)))
        ts += 60 * SECOND
        rows.append(Row("died", ts=ts, stream=stream(0, attempt=attempt)))
        ts += SECOND
        corpus.batches.append(rows)
        corpus.firsts.append({})
    return corpus


def test_what_a_later_attempt_did_again_or_threw_away_is_superseded() -> None:
    client = client_of(overlapping())
    answer = client.search("superseded:true", run="llama", limit=None, groups=False)
    steps = [line for line in answer.lines if line.text == "step"]
    assert [(x.attempt, x.iteration) for x in steps] == [(0, i) for i in range(101, 131)]
    # the words said after the last step, and what attempts say at their start and end, stay
    assert [line.text for line in answer.lines].count("words") == 29
    kept = client.search("superseded:false", run="llama", limit=None, groups=False).lines
    assert [x.iteration for x in kept if x.text == "step"] == list(range(111))
    assert [x.text for x in kept if x.text in ("starts", "died")] == ["starts", "died"] * 2
    assert all(line_json(line)["superseded"] for line in steps)


def test_bounds_that_hold_the_first_attempt_only_know_of_the_second() -> None:
    client = client_of(overlapping())
    bounds = {"since": "2026-03-01T00:01:00Z", "until": "2026-03-01T00:02:00Z"}
    answer = client.search("superseded:true step", run="llama", limit=None, groups=False, **bounds)
    assert [x.iteration for x in answer.lines] == list(range(101, 119))
    assert all(line.superseded for line in answer.lines)


def test_a_run_that_went_straight_through_has_nothing_superseded() -> None:
    corpus = Corpus([[Row("s", ts=T0 + i, stream=stream(0), iteration=i) for i in range(9)]])
    corpus.firsts.append({})
    client = client_of(corpus)
    assert found(client, "superseded:true") == set()
    assert len(found(client, "superseded:false")) == 9
    assert found(client, "superseded!=false") == set()


def test_iterations_that_are_counted_anew_in_each_epoch_are_no_restart() -> None:
    rows = [Row("s", ts=T0 + i, stream=stream(0), iteration=i % 5) for i in range(20)]
    corpus = Corpus([rows])
    corpus.firsts.append({})
    assert found(client_of(corpus), "superseded:true") == set()


def test_a_rank_that_loads_a_checkpoint_tells_it_of_all() -> None:
    rows = []
    for i, iteration in enumerate([*range(10), *range(5, 12)]):
        if i == 10:
            rows.append(Row(LOADED, ts=T0 + i * SECOND - 9, stream=stream(0)))
        for rank in range(3):
            rows.append(Row("s", ts=T0 + i * SECOND, stream=stream(rank), iteration=iteration))
    corpus = Corpus([rows])
    corpus.firsts.append({})
    client = client_of(corpus)
    lines = client.search("superseded:true", run="llama", limit=None, groups=False).lines
    assert {(x.rank, x.iteration) for x in lines} == {
        (r, i) for r in range(3) for i in range(5, 10)
    }
    assert len(lines) == 15


MEGATRON = (
    " [2024-05-01 10:00:{s:02d}] iteration {i:8d}/  500 | consumed samples: {i} | elapsed time per "
    "iteration (ms): 1000.0 | learning rate: 1.0E-05 | lm loss: 2.5E+00 |"
)


def test_imported_logs_of_a_job_that_was_started_again(tmp_path: Path) -> None:
    text = [MEGATRON.format(s=i, i=i) for i in range(1, 9)]
    text += ["[2024-05-01 10:00:20] will restart worker group"]
    text += ["  loading checkpoint from /ckpt at iteration 5"]
    text += [MEGATRON.format(s=24 + i, i=i) for i in range(6, 12)]
    path = tmp_path / "rank_0.log"
    path.write_text("\n".join(text) + "\n")
    store = MemoryStore()
    import_paths([str(path)], store=store, tenant="default", run="job", now_ns=T0)
    client = Client(store=store)
    lines = client.search("superseded:true", run="job", limit=None, groups=False).lines
    assert [line.iteration for line in lines] == [6, 7, 8]
    assert client.count("superseded:false", run="job").count == len(text) - 3


def test_a_flag_takes_no_other_word() -> None:
    with pytest.raises(Exception, match="superseded"):
        client_of(overlapping()).search("superseded:maybe", run="llama")
