"""Staged files are published once whatever is repeated; nothing that is named is ever swept."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoflux.engine.source import Rejected
from geoflux.engine.staging import (
    FOLDER,
    QUARANTINE_SCHEMA,
    publish,
    published_name,
    stage_rejected,
    stage_table,
    staged_name,
    sweep,
)
from geoflux.errors import StateError
from geoflux.state.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "run"))


def test_names_are_new_each_time_and_lead_to_their_folder() -> None:
    one, other = staged_name("matches", 3, 2), staged_name("matches", 3, 2)
    assert one != other
    assert one.startswith(f"{FOLDER}/matches-e00000003-s0002-")
    assert published_name(one).startswith("matches/e00000003-s0002-")
    assert published_name(staged_name("quarantine", 0)).startswith("quarantine/e00000000-")


def test_publishing_twice_does_no_harm(store: Store, tmp_path: Path) -> None:
    table = pa.table({"query_id": ["q"], "event_id": [1]})
    staged = [stage_table(store, "matches", epoch, table) for epoch in range(3)]
    names = [published_name(name) for name in staged]
    assert store.names("matches") == []
    publish(store, names[:2])
    for _ in range(2):
        publish(store, names)
        assert [f"matches/{n}" for n in store.names("matches")] == sorted(names)
        assert store.names(FOLDER) == []
    assert pq.read_table(tmp_path / "run" / names[0]).equals(table)


def test_publishing_what_was_never_staged_is_a_state_error(store: Store) -> None:
    with pytest.raises(StateError, match="missing though it was committed"):
        publish(store, ["matches/e1-x.parquet"])


def test_the_sweep_keeps_what_it_is_told(store: Store) -> None:
    table = pa.table({"a": [1]})
    kept, lost = (stage_table(store, "matches", 1, table) for _ in range(2))
    for name in ("state/base.arrow", "state/orphan.arrow", "plans/1.json", "epochs/intents/1.json"):
        store.write_bytes(name, b"x")
    publish(store, [published_name(stage_table(store, "matches", 0, table))])
    assert sweep(store, frozenset({kept, "state/base.arrow"})) == 2
    assert not store.exists(lost)
    assert not store.exists("state/orphan.arrow")
    for name in (kept, "state/base.arrow", "plans/1.json", "epochs/intents/1.json"):
        assert store.exists(name)
    assert len(store.names("matches")) == 1
    assert sweep(store, frozenset({kept, "state/base.arrow"})) == 0
    assert sweep(Store(store.root + "/new"), frozenset()) == 0


def test_rejected_rows_are_written_with_their_reason(store: Store, tmp_path: Path) -> None:
    bad = [Rejected("bad_time", "no time", '{"a": 1}'), Rejected("bad_id", "no id", "x")]
    name = published_name(stage_rejected(store, 4, "event", bad))
    publish(store, [name])
    table = pq.read_table(tmp_path / "run" / name)
    assert table.schema.equals(QUARANTINE_SCHEMA)
    assert table.to_pylist() == [
        {"epoch": 4, "origin": "event", "reason": b.code, "detail": b.detail, "row": b.row}
        for b in bad
    ]
