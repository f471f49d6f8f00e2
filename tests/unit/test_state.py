"""State: files that are there whole or not at all, the epoch log, references through changes."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from geoflux.errors import StateError
from geoflux.plan import GridPlan, Merge, Move, Split
from geoflux.state.epoch_log import EpochLog
from geoflux.state.refs import Ref, StateMap
from geoflux.state.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "run"))


def test_a_file_is_written_whole_or_not_at_all(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write_bytes("a/b.bin", b"old")

    def crash(*_: object) -> None:
        raise OSError("the machine went away")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        with pytest.raises(OSError, match="went away"):
            store.write_bytes("a/b.bin", b"newer and longer")
        with pytest.raises(OSError, match="went away"):
            store.write_bytes("a/c.bin", b"new")
    assert store.read_bytes("a/b.bin") == b"old"
    assert not store.exists("a/c.bin")
    assert store.names("a") == ["b.bin"], "what a crash left half written is no file"
    store.write_bytes("a/b.bin", b"new")
    assert store.read_bytes("a/b.bin") == b"new"


def test_json_and_names_and_sizes(store: Store) -> None:
    store.write_json("x/2.json", {"é": [1, None]})
    store.write_json("x/1.json", 5)
    store.make_folder("x/folder")
    assert store.read_json("x/2.json") == {"é": [1, None]}
    assert store.names("x") == ["1.json", "2.json"]
    assert store.names("nowhere") == []
    assert store.size("x/1.json") == 1
    assert store.exists("x/1.json")
    assert not store.exists("x/3.json")


def test_moving_twice_does_no_harm(store: Store) -> None:
    store.write_bytes("staging/f", b"data")
    store.make_folder("matches")
    for _ in range(3):
        store.move("staging/f", "matches/f")
        assert store.read_bytes("matches/f") == b"data"
        assert not store.exists("staging/f")
    with pytest.raises(StateError, match="missing though it was committed"):
        store.move("staging/g", "matches/g")


def test_a_missing_file_is_a_state_error_that_names_it(store: Store) -> None:
    for read in (store.read_bytes, store.read_json, store.open):
        with pytest.raises(StateError, match=r"gone\.json is missing"):
            read("gone.json")


def test_deleting_twice_does_no_harm(store: Store) -> None:
    store.write_bytes("f", b"")
    store.delete("f")
    store.delete("f")
    assert not store.exists("f")


def test_a_store_travels_to_workers(store: Store) -> None:
    store.write_bytes("f", b"data")
    assert store.is_local
    there = pickle.loads(pickle.dumps(store))
    assert there == store
    assert there.read_bytes("f") == b"data"


def test_the_epoch_log_before_during_and_after_an_epoch(store: Store) -> None:
    log = EpochLog(store)
    assert (log.last(), log.intent(0), list(log.manifests())) == (None, None, [])
    log.open(0, {"plan": 1})
    again = EpochLog(store)
    assert again.intent(0) == {"format": 1, "plan": 1}
    assert again.last() is None
    again.commit(0, {"epoch": 0, "done": True})
    assert again.intent(0) is None
    assert again.last() == 0
    assert log.manifest(0) == {"format": 1, "epoch": 0, "done": True}


def test_manifests_come_in_order_beyond_ten(store: Store) -> None:
    log = EpochLog(store)
    for epoch in range(12):
        log.open(epoch, {})
        log.commit(epoch, {"epoch": epoch})
    assert log.last() == 11
    assert [m["epoch"] for m in log.manifests()] == list(range(12))


def test_the_intent_survives_a_commit_that_did_not_happen(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the temporary file and its renaming, in the first epoch and in a later one."""
    log = EpochLog(store)
    for epoch in range(2):
        log.open(epoch, {"n": epoch})
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("killed")))
            with pytest.raises(OSError, match="killed"):
                log.commit(epoch, {"epoch": epoch})
        after = EpochLog(store)
        assert after.last() == (epoch - 1 if epoch else None)
        assert after.intent(epoch) == {"format": 1, "n": epoch}
        assert [m["epoch"] for m in after.manifests()] == list(range(epoch))
        after.commit(epoch, {"epoch": epoch})
    assert [m["epoch"] for m in log.manifests()] == [0, 1]


@pytest.mark.parametrize("content", [{"format": 2}, {}, [], "x"])
def test_another_format_is_refused(store: Store, content: object) -> None:
    store.write_json(f"epochs/manifests/{0:012d}.json", content)
    store.write_json(f"epochs/intents/{1:012d}.json", content)
    log = EpochLog(store)
    with pytest.raises(StateError, match="another version of geoflux"):
        log.manifest(0)
    with pytest.raises(StateError, match="another version of geoflux"):
        log.intent(1)
    with pytest.raises(StateError):
        list(log.manifests())


def test_a_missing_manifest_is_a_state_error(store: Store) -> None:
    with pytest.raises(StateError, match="missing"):
        EpochLog(store).manifest(7)


def test_references_follow_split_merge_and_move() -> None:
    plan = GridPlan.initial(8, 4, 2)
    left, right = (p.id for p in plan.partitions)
    state = StateMap(
        {
            left: (Ref("base", "state/l", left), Ref("delta", "state/d", left)),
            right: (Ref("base", "state/r", right), Ref("delta", "state/d", right)),
        }
    )
    moved = plan.apply(Move(left, 1))
    assert state.changed(Move(left, 1), moved) == state

    split = Split(left, "columns", 2, 0, 1)
    after = plan.apply(split)
    children = [p.id for p in after.partitions if p.parents == (left,)]
    halves = state.changed(split, after)
    assert set(halves.refs) == {*children, right}
    assert halves.of(children[0]) == halves.of(children[1]) == state.of(left)
    assert halves.of(right) == state.of(right)
    assert halves.segments() == state.segments()

    merge = Merge(children[0], children[1], 0)
    joined = after.apply(merge)
    whole = next(p.id for p in joined.partitions if p.parents == tuple(children))
    again = halves.changed(merge, joined)
    areas = [after.partition(child).box for child in children]
    inherited = tuple(ref._replace(area=area) for area in areas for ref in state.of(left))
    assert again.of(whole) == inherited, "of each child what it was told of"
    assert set(again.refs) == {whole, right}

    last = Merge(right, whole, 1)
    everything = again.changed(last, joined.apply(last))
    (only,) = everything.refs.values()
    mine = tuple(ref._replace(area=plan.partition(right).box) for ref in state.of(right))
    assert only == mine + inherited
    assert everything.segments() == state.segments()


def test_partitions_without_state_have_no_references() -> None:
    plan = GridPlan.initial(8, 4, 1)
    (whole,) = plan.partitions
    split = Split(whole.id, "rows", 1, 0, 0)
    after = StateMap({}).changed(split, plan.apply(split))
    assert after.segments() == frozenset()
    assert after.of(99) == ()


def test_references_are_appended_replaced_and_written_down() -> None:
    state = StateMap({1: (Ref("base", "b", 1),)})
    more = state.appended({1: Ref("delta", "d", 1), 2: Ref("delta", "d", 2)})
    assert more.of(1) == (Ref("base", "b", 1), Ref("delta", "d", 1))
    assert more.of(2) == (Ref("delta", "d", 2),)
    assert state.of(2) == ()
    assert more.replaced({1: (Ref("base", "n", 1),)}).segments() == {"n", "d"}
    assert StateMap.from_dict(more.to_dict()) == more
