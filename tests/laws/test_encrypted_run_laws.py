"""Whole runs without Spark, encrypted: the same results as in plain through moves, restarts and
crashes, and nothing to be read in any file that they keep for themselves."""

from __future__ import annotations

import random
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restless import Restless
from test_engine_laws import matches
from test_keyed_laws import Restless as Moving
from test_keyed_laws import Rows, read
from test_retention_laws import PHASES
from test_swarm_run_laws import check_counts, check_plans, played, query, stories
from test_window_laws import Run, bits
from watched_run import COLUMNS, ROWS, table_of

import snapshots_by_hand
from geoflux.engine import execute, keyed_states
from geoflux.engine.inline import run_epoch
from geoflux.engine.keyed_engine import KeyedEngine, KeyedSetting
from geoflux.engine.keyed_rows import KeyedIntake
from geoflux.engine.keyed_task import Budget
from geoflux.engine.source import EventSource
from geoflux.errors import StateError
from geoflux.operators.group_by import WindowedGroupBy
from geoflux.plan import GridPlan, HashPlan
from geoflux.state import segments
from geoflux.state.decrypted import Decrypted
from geoflux.state.seal import MARK, Seal
from geoflux.state.store import Store

PRIVATE = ("state", "epochs", "plans")


def started(folder: Path, story: dict[str, Any], seal: Seal | None, numbers: Any) -> Run:
    slots = story["slots"]
    config = {
        "engine": {"slots": slots, "lateness": "30s"}, "run": {"mode": "follow"},
        "retention": story["retention"],
    }  # fmt: skip
    folder.mkdir()
    policy = Restless(numbers, 2, 0.5)
    run = Run(folder, config, GridPlan.initial(COLUMNS, ROWS, slots), policy, seal=seal)
    run.start(table_of(story["rows"], pa.int64()), [])
    return run


@settings(max_examples=8, phases=PHASES, deadline=None)
@given(
    stories(), st.lists(st.lists(st.integers(0, 99), max_size=3), min_size=1, max_size=4),
    st.sampled_from([0, 1 << 27]),
)  # fmt: skip
def test_an_encrypted_run_gives_what_a_plain_one_gives(
    story: dict[str, Any], numbers: list[list[int]], kept: int
) -> None:
    outcomes = []
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "_decrypted", Decrypted(kept))
        for seal in (None, Seal.new(bytes(32))):
            run = started(Path(name) / str(seal is None), story, seal, numbers)
            manifests = played(run, story)
            check_plans(run.setting.store, manifests)
            check_counts(run, story["rows"], manifests)
            plain = [path.read_bytes()[: len(MARK)] != MARK for path in private(run.folder / "out")]
            assert all(plain) if seal is None else not any(plain)
            outcomes.append((matches(run.folder), bits(run.windows()), [
                {k: m[k] for k in ("matches", "aggregates", "next_plan", "late", "live_queries")}
                for m in manifests
            ]))  # fmt: skip
    assert outcomes[0] == outcomes[1]


def private(out: Path) -> list[Path]:
    return [path for part in PRIVATE for path in (out / part).rglob("*") if path.is_file()]


class Search:
    """Looks for texts and numbers, as bytes, in all that a run keeps for itself."""

    def __init__(self, out: Path, **needles: Iterable[Any]) -> None:
        self._out = out
        self._needles = {kind: [_as_bytes(n) for n in some] for kind, some in needles.items()}
        self.found: Counter[tuple[str, str]] = Counter()
        self.files: set[str] = set()

    def look(self) -> None:
        """Once more, at the files that are there now and were not before."""
        for path in private(self._out):
            name = str(path.relative_to(self._out))
            if name in self.files:
                continue
            self.files.add(name)
            data = path.read_bytes()
            stem = f"{path.parent.name}/{path.name.split('-')[0]}"
            for kind, some in self._needles.items():
                self.found[kind, stem if path.parent.name == "state" else path.parent.name] += sum(
                    needle in data for needle in some
                )

    def kinds(self) -> dict[str, set[str]]:
        """What was found, and where."""
        places: dict[str, set[str]] = {}
        for (kind, where), count in self.found.items():
            if count:
                places.setdefault(where, set()).add(kind)
        return places


def _as_bytes(needle: Any) -> bytes:
    return needle.encode() if isinstance(needle, str) else struct.pack("<d", needle)


def told(seed: int) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """Events and control records in which everything has a name and a place of its own."""
    dice = random.Random(seed)
    rows = [
        {"id": f"event-{k:04d}-{dice.getrandbits(32):08x}", "lon": dice.uniform(-170, 170),
         "lat": dice.uniform(-80, 80), "time": k, "speed": dice.uniform(0, 40), "kind": "a",
         "serial": k}
        for k in range(300)
    ]  # fmt: skip
    batches = []
    for number in range(6):
        batch = [query(dice, f"query-{number}-{dice.getrandbits(32):08x}") for _ in range(20)]
        for record in batch:
            record["user"] = f"user-{dice.getrandbits(48):012x}"
        if number:
            batch.append({"op": "terminate", "id": batches[number - 1][0]["id"]})
        batch.append(
            {"op": "snapshot", "id": f"snap-{number}-{dice.getrandbits(32):08x}",
             "user": f"user-{dice.getrandbits(48):012x}",
             "shape": {"type": "rectangle", "west": -170, "south": -80, "east": 170, "north": 80}}
        )  # fmt: skip
        batches.append(batch)
    return rows, batches


@pytest.mark.parametrize("seal", [None, Seal.new(bytes(32))], ids=["plain", "sealed"])
def test_no_place_and_no_name_is_found_in_what_an_encrypted_run_keeps(
    tmp_path: Path, seal: Seal | None
) -> None:
    rows, batches = told(3)
    records = [record for batch in batches for record in batch if record["op"] != "terminate"]
    story = {"slots": 3, "retention": {"time": "200s"}, "rows": rows}
    run = started(tmp_path / "run", story, seal, [[5], [4, 11], [1], [0]])
    boxes = [r["shape"] for r in records if r["op"] == "register"]
    search = Search(
        run.folder / "out",
        event_ids=[row["id"] for row in rows], lon=[row["lon"] for row in rows],
        lat=[row["lat"] for row in rows], speed=[row["speed"] for row in rows],
        query_ids=[r["id"] for r in records if r["op"] == "register"],
        snapshot_ids=[r["id"] for r in records if r["op"] == "snapshot"],
        users=[r["user"] for r in records],
        edges=[box["west"] for box in boxes if "west" in box],
    )  # fmt: skip
    for number, batch in enumerate(batches):
        run.tell(batch)
        run.now += 1.0
        run.engine.open(number)  # an intent that is left behind, and found again
        search.look()
        run.recover()
        run.epoch(number, (50 * number, 50 * number + 50))
        search.look()
    run.epoch(6, (300, 300), final=True)
    search.look()
    check_counts(run, rows, [run.engine.manifest(k) for k in range(7)])
    assert {name.split("/")[1].split("-")[0] for name in search.files if "state/" in name} >= {
        "control", "kept", "windows", "stats",
    }  # fmt: skip
    if seal is not None:
        assert search.kinds() == {}
        return
    kinds = search.kinds()
    assert kinds["state/kept"] >= {"event_ids", "lon", "lat", "speed"}
    assert kinds["state/control"] >= {"query_ids", "users", "edges"}
    assert kinds["intents"] >= {"snapshot_ids", "users"}
    assert kinds["state/windows"] & {"event_ids", "speed"}
    answers = snapshots_by_hand.answers(run.folder / "out")
    assert len(answers) == 6, "snapshots were answered"


def keyed(
    folder: Path, seal: Seal | None, operator: Any, rows: list[Any]
) -> tuple[list[Any], Search]:
    """A run of an operator whose slots have no memory and no time; what it gave, and the search."""
    intake = KeyedIntake(operator, "@position", "time", "s")
    budgets = {slot: Budget(0.0, 4000, 400) for slot in range(3)}
    setting = KeyedSetting(Store(str(folder), seal), operator, intake, Moving([3, 9, 17]), budgets)

    def recovered() -> KeyedEngine:
        return KeyedEngine.recovered(setting, lambda: HashPlan.initial(3, per_slot=4))

    search = Search(folder, keys=[r[0] for r in rows], values=[r[1] for r in rows])
    engine, source = recovered(), cast("EventSource", Rows(rows))
    position = epoch = 0
    spilled, carried = [], []
    while position < len(rows) or engine.wants_closing():
        end = min(len(rows), position + 60)
        manifest = run_epoch(engine, source, epoch, (position, end))
        spilled.append(len(manifest["spilled"]))
        carried.append(manifest["carried_out"])
        search.look()
        position, epoch = end, epoch + 1
        if epoch % 3 == 0:
            engine = recovered()
            keyed_states._cache.clear()
    assert max(spilled) > 0
    assert max(carried) > 0
    found = [row for file in sorted((folder / "results").glob("*")) for row in read(file)]
    return sorted((int(row["id"]), row["value"]) for row in found), search


def test_no_key_and_no_value_is_found_where_states_are_spilled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geoflux.engine.keyed_execute._CHUNK", 4)
    monkeypatch.setattr("geoflux.engine.keyed_states._MOST_JOURNALS", 2)
    operator = WindowedGroupBy("car", "speed", "mean", rows=5)
    dice = random.Random(7)
    cars = [f"car-{dice.getrandbits(48):012x}" for _ in range(40)]
    rows = [(dice.choice(cars), dice.uniform(0, 100), k) for k in range(600)]
    plain, search = keyed(tmp_path / "plain", None, operator, rows)
    for place in ("state/keyed", "state/journal", "state/carry"):
        assert search.kinds()[place] == {"keys", "values"}, "the search can find them"
    sealed, hidden = keyed(tmp_path / "sealed", Seal.new(bytes(32)), operator, rows)
    assert hidden.kinds() == {}
    assert {name.split("-")[0] for name in hidden.files} >= {
        "state/keyed", "state/journal", "state/carry",
    }  # fmt: skip
    assert sealed == plain
    assert len(sealed) == len(rows)


def test_a_base_is_decrypted_once_however_many_epochs_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With control changes in every epoch, each of which opens all partitions anew, and a memory
    for segments that nobody holds which is too small for any."""
    monkeypatch.setattr(segments, "_decrypted", Decrypted(0))
    monkeypatch.setattr("geoflux.operators.pubsub._SMALL", 30)
    monkeypatch.setattr(execute, "_cache", execute._cache.__class__())
    opened: Counter[str] = Counter()
    real = Store.open

    def counting(self: Store, name: str) -> Any:
        opened[name] += 1
        return real(self, name)

    monkeypatch.setattr(Store, "open", counting)
    rows, _ = told(5)
    run = started(tmp_path / "run", {"slots": 2, "retention": {}, "rows": rows},
                  Seal.new(bytes(32)), [[]])  # fmt: skip
    dice = random.Random(1)
    run.tell([query(dice, f"q-{k}") for k in range(400)])
    for number in range(8):
        run.epoch(number, (30 * number, 30 * number + 30))
        run.tell([query(dice, f"later-{number}")])
    bases = {name: count for name, count in opened.items() if "/base-" in name}
    assert len(bases) >= 2
    assert set(bases.values()) == {1}


def test_a_segment_that_was_tampered_with_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, batches = told(4)
    run = started(tmp_path / "run", {"slots": 2, "retention": {}, "rows": rows},
                  Seal.new(bytes(32)), [[]])  # fmt: skip
    run.tell(batches[0])
    run.epoch(0, (0, 50))
    name = next((run.folder / "out/state").glob("control-*"))
    data = bytearray(name.read_bytes())
    data[len(data) // 2] ^= 1
    name.write_bytes(bytes(data))
    monkeypatch.setattr(segments, "_decrypted", Decrypted(0))  # as a new process has it
    with pytest.raises(StateError, match=r"control-.*is not as it was written"):
        run.recover()
