"""What every store promises, over memory, disk and S3 on two servers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ranklog.errors import AlreadyExists, BadInput, Corrupt, NotFound, PreconditionFailed
from ranklog.limits import KEY_BYTES_MAX
from ranklog.store import MemoryStore, ObjectInfo, S3Store, Store

# In order of their UTF-8 bytes, which is neither the order of a folder walk ("a-" < "a/" < "a0")
# nor that of UTF-16 (U+FF21 < U+1F600).
ORDERED = [
    "a",
    "a-b/x",
    "a.b",
    "a/b",
    "a/b/c",
    "a/b0",
    "a0",
    "b%2Fc/d=e f+g.parquet",
    "data/é/1",
    "data/Ａ",
    "data/😀",
]

# Keys as the engine makes them: of fixed depth, no name the beginning of its neighbour's.
HOURS = [f"t/index/2026-01-{day:02d}/{hour:02d}/line.idx" for day in (1, 2, 31) for hour in (0, 9)]


def seaweedfs_differs(request: pytest.FixtureRequest, why: str) -> None:
    """Expect a failure there, and say so when a newer SeaweedFS does as S3 does."""
    if request.node.callspec.params["store"] == "seaweedfs":
        request.applymarker(pytest.mark.xfail(reason=f"SeaweedFS {why}", strict=True))


def test_an_object_comes_back_as_it_was_put(store: Store) -> None:
    for data in (b"", b"\x00\xff\n" * 1_000):
        store.put("t/data/x.parquet", data)
        assert store.get("t/data/x.parquet") == data


def test_a_put_replaces_and_says_its_etag(store: Store) -> None:
    first = store.put("k", b"one")
    second = store.put("k", b"two, longer")
    assert store.get("k") == b"two, longer"
    assert list(store.list("")) == [ObjectInfo("k", 11, second)]
    assert (first == second) == (first == "")


def test_create_once_keeps_the_first(store: Store) -> None:
    store.put("k/index.idx", b"first", if_absent=True)
    with pytest.raises(AlreadyExists):
        store.put("k/index.idx", b"second", if_absent=True)
    assert store.get("k/index.idx") == b"first"


def test_create_once_of_an_empty_object_keeps_it(store: Store) -> None:
    store.put("hours/05", b"", if_absent=True)
    with pytest.raises(AlreadyExists):
        store.put("hours/05", b"", if_absent=True)


def test_a_deleted_key_can_be_created_again(store: Store) -> None:
    store.put("k/a", b"one", if_absent=True)
    store.delete("k/a")
    store.put("k/a", b"two", if_absent=True)
    assert store.get("k/a") == b"two"


@pytest.mark.parametrize("round", range(5))
def test_of_concurrent_creators_exactly_one_wins(store: Store, round: int) -> None:
    writers = 12
    barrier = threading.Barrier(writers)

    def create(number: int) -> bool:
        barrier.wait()
        try:
            store.put("race/index.idx", b"%d" % number * 1_000, if_absent=True)
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(writers) as pool:
        won = list(pool.map(create, range(writers)))
    assert won.count(True) == 1
    assert store.get("race/index.idx") == b"%d" % won.index(True) * 1_000


def test_a_reader_never_sees_half_an_object(store: Store) -> None:
    values = [bytes([letter]) * 200_000 for letter in b"abcd"]
    store.put("k", values[0])
    done = threading.Event()
    seen: set[bytes] = set()

    def read() -> None:
        while not done.is_set():
            seen.add(store.get("k"))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for _ in range(5):
            for value in values:
                store.put("k", value)
        done.set()
        for reader in readers:
            reader.result()
    assert seen <= set(values)


def test_a_range_is_exactly_what_was_asked(store: Store) -> None:
    store.put("k", b"0123456789")
    assert store.get_range("k", 0, 10) == b"0123456789"
    assert store.get_range("k", 3, 4) == b"3456"
    assert store.get_range("k", 9, 1) == b"9"
    assert store.get_range("k", 4, 0) == b""


@pytest.mark.parametrize(("start", "length"), [(8, 3), (10, 1), (99, 5)])
def test_a_range_past_the_end_is_corrupt(store: Store, start: int, length: int) -> None:
    store.put("k", b"0123456789")
    with pytest.raises(Corrupt):
        store.get_range("k", start, length)


def test_if_match_names_one_version(store: Store) -> None:
    first = store.put("k", b"first")
    assert store.get_range("k", 0, 5, if_match=first) == b"first"
    store.put("k", b"second")
    if first:  # a folder has no etags
        with pytest.raises(PreconditionFailed):
            store.get_range("k", 0, 5, if_match=first)


def test_what_is_not_there_is_not_found(store: Store) -> None:
    store.put("a/b", b"x")
    for key in ("missing", "a", "a/b/c", "a/c"):
        with pytest.raises(NotFound):
            store.get(key)
        with pytest.raises(NotFound):
            store.get_range(key, 0, 1)
        store.delete(key)
    assert [found.key for found in store.list("")] == ["a/b"]


def test_hours_are_listed_in_order_from_anywhere(store: Store) -> None:
    for key in reversed(HOURS):
        store.put(key, b"")
    for at, key in enumerate(HOURS):
        assert [found.key for found in store.list("t/index/", start_after=key)] == HOURS[at + 1 :]
    assert [found.key for found in store.list("t/index/2026-01-0")] == HOURS[:4]
    assert [
        found.key for found in store.list("t/index/", start_after="t/index/2026-01-3")
    ] == HOURS[4:]
    assert list(store.list_folders("t/index/2026-01-02/")) == [key[:-8] for key in HOURS[2:4]]


def test_a_list_is_in_byte_order_and_begins_anywhere(
    store: Store, request: pytest.FixtureRequest
) -> None:
    seaweedfs_differs(request, "lists folder by folder: a/ before a-b/")
    for key in reversed(ORDERED):
        store.put(key, key.encode())
    expected = [(key, len(key.encode())) for key in ORDERED]
    assert [(found.key, found.length) for found in store.list("")] == expected
    for at, key in enumerate(ORDERED):
        assert [found.key for found in store.list("", start_after=key)] == ORDERED[at + 1 :]


@pytest.mark.parametrize("prefix", ["a", "a/", "a/b", "a/b/", "a-", "data/", "data/é", "b%2F", "x"])
def test_a_list_takes_any_prefix(store: Store, prefix: str, request: pytest.FixtureRequest) -> None:
    if prefix in ("a", "a/", "a/b"):
        seaweedfs_differs(request, "lists folder by folder, and skips a/b/ after a/b")
    for key in ORDERED:
        store.put(key, b"")
    expected = [key for key in ORDERED if key.startswith(prefix)]
    assert [found.key for found in store.list(prefix)] == expected
    assert [found.key for found in store.list(prefix, start_after="a/b")] == [
        key for key in expected if key > "a/b"
    ]


def test_a_list_goes_on_over_pages(store: Store) -> None:
    keys = [f"page/{number:05d}" for number in range(1_010)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.put(key, b""), keys))
    assert [found.key for found in store.list("page/")] == keys
    assert [found.key for found in store.list("page/", start_after=keys[4])] == keys[5:]


def test_folders_are_one_level_below(store: Store, request: pytest.FixtureRequest) -> None:
    seaweedfs_differs(request, "lists a/ before a-b/")
    for key in ORDERED:
        store.put(key, b"")
    assert list(store.list_folders("")) == ["a-b/", "a/", "b%2Fc/", "data/"]
    assert list(store.list_folders("a/")) == ["a/b/"]
    assert list(store.list_folders("data/")) == ["data/é/"]
    assert list(store.list_folders("a/b/")) == []
    assert list(store.list_folders("nowhere/")) == []


def test_a_folder_ends_with_its_last_object(store: Store, request: pytest.FixtureRequest) -> None:
    seaweedfs_differs(request, "removes an emptied folder some time later")
    store.put("run/launch/hours/05", b"")
    store.delete("run/launch/hours/05")
    assert list(store.list_folders("")) == []
    assert list(store.list("")) == []


def test_an_object_and_a_folder_may_share_a_name(store: Store) -> None:
    store.put("run.v2", b"object")
    store.put("run.v2/x", b"below")
    assert (store.get("run.v2"), store.get("run.v2/x")) == (b"object", b"below")
    store.delete("run.v2/x")
    assert [found.key for found in store.list("")] == ["run.v2"]


@pytest.mark.parametrize(
    "key",
    ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a/.", "\ud800", "x" * 1_025],
)
def test_a_key_that_tools_rewrite_is_refused(store: Store, key: str) -> None:
    for refused in (store.get, store.delete, lambda key: store.put(key, b"")):
        with pytest.raises(BadInput):
            refused(key)


def test_a_long_name_is_kept(store: Store) -> None:
    prefix = len(store.url) if isinstance(store, S3Store) else 0
    key = f"runs/{'n' * (KEY_BYTES_MAX - 20 - prefix)}/x"
    store.put(key, b"long")
    assert store.get(key) == b"long"
    assert [found.key for found in store.list("runs/")] == [key]
    assert list(store.list_folders("runs/")) == [key[:-1]]


def test_only_a_folder_has_files_to_read_in_place(store: Store) -> None:
    store.put("data/x.parquet", b"PAR1")
    path = store.local_path("data/x.parquet")
    if path is not None:
        assert path.read_bytes() == b"PAR1"
    assert (path is None) == isinstance(store, S3Store | MemoryStore)
