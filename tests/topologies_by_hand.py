"""Applications without Spark: any operator may have the next epoch, and the whole may die at any
point; and what must come of it, by going through rows one by one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from geoflux import Config
from geoflux.engine import keyed_engine, keyed_states, log_content
from geoflux.engine.file_log import FileLog
from geoflux.engine.inline import run_epoch
from geoflux.engine.stream_events import StreamEvents
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import store_of
from geoflux.state.store import Store
from geoflux.topology import Ingest, Node, Stream, Topology
from geoflux.topology.draining import Draining, Progress
from geoflux.topology.dropping import Dropping
from geoflux.topology.settings import configs_of
from geoflux.topology_api import verify_topology
from geoflux.topology_parts import opened
from streams_by_hand import Countdown

Row = tuple[str, int, int]
"""Key, rounds left, value."""


EVENTS = pa.schema(
    [("id", pa.string()), ("key", pa.string()), ("left", pa.int64()), ("value", pa.int64()),
     ("lon", pa.float64()), ("lat", pa.float64()), ("time", pa.int64())]
)  # fmt: skip


class Died(Exception):
    """The whole application is gone."""


def config_of(folder: Path, rows: list[Row], epoch_events: int) -> Config:
    """Rows in two files, and small epochs."""
    (folder / "events").mkdir(parents=True, exist_ok=True)
    for part in range(2):
        some = rows[part::2]
        table = pa.table(
            {"id": [f"{part}-{i}" for i in range(len(some))], "key": [r[0] for r in some],
             "left": [r[1] for r in some], "value": [r[2] for r in some],
             "lon": [float(r[2] % 180) for r in some], "lat": [float(r[1]) for r in some],
             "time": list(range(len(some)))}, schema=EVENTS,
        )  # fmt: skip
        if some:
            pq.write_table(table, folder / "events" / f"{part}.parquet")
    square = {"type": "rectangle", "west": 0, "south": -1, "east": 90, "north": 1.5}
    query = {"op": "register", "id": "near", "shape": square}
    (folder / "queries.ndjson").write_text(json.dumps(query))
    return Config.from_dict(
        {
            "space": {"grid": [16, 16]},
            "source": {"kind": "files", "path": str(folder / "events")},
            "control": {"path": str(folder / "queries.ndjson")},
            "engine": {"slots": 2, "epoch_events": epoch_events, "master": "local[2]",
                       "memory": "1g"},
            "flux": {"partitions": 2},
        }
    )  # fmt: skip


class Inline:
    """An application in this process. ``offsets`` is what Spark's checkpoint would hold: it says
    which rows every epoch has, and outlives a crash."""

    def __init__(self, topology: Topology, config: Config, out: Path) -> None:
        self._topology, self._config, self._out = topology, config, out
        self._offsets: dict[str, list[int]] = {node.name: [0] for node in topology.nodes}
        self.again()

    def _start(self) -> None:
        log_content._known.clear()
        keyed_states._cache.clear()
        topology = self._topology
        self.parts = opened(topology, configs_of(topology, self._config), self._out)
        sources: dict[str, Any] = {name: part.inputs.events for name, part in self.parts.items()}
        readers = {n: s for n, s in sources.items() if isinstance(s, StreamEvents)}
        self._sources, self._readers = sources, readers
        self._engines: dict[str, Any] = {n: part.engine() for n, part in self.parts.items()}
        self._draining = Draining(topology, readers)
        for name in self._engines:
            self._note(name)
        self._dropping = None
        if self._config.output.streams == "drop":
            store = Store(str(self._out))
            self._dropping = Dropping(topology, readers, store, self._draining.progress)

    def _note(self, name: str) -> None:
        last = self._engines[name].last
        told = None
        if last is not None:
            manifest = self._engines[name].manifest(last)
            told = manifest | {"position": self._offsets[name][last + 1]}
        self._draining.progress[name] = Progress.of(told)

    def again(self) -> None:
        """After a crash; which may come again while things are put in order."""
        while True:
            try:
                return self._start()
            except Died:
                continue

    def step(self, name: str) -> bool:
        """One epoch of an operator, if there is anything to do; what died is done again."""
        engine, source, ends = self._engines[name], self._sources[name], self._offsets[name]
        epoch = 0 if engine.last is None else engine.last + 1
        if epoch + 1 == len(ends):
            end = source.latest(ends[-1], self.parts[name].config.engine.epoch_events)
            if end == ends[-1]:
                return False
            ends.append(end)
        run_epoch(engine, source, epoch, (ends[epoch], ends[epoch + 1]))
        self._note(name)
        return True

    def run(self, choose: Callable[[list[str]], str]) -> None:
        """Until every stream is over."""
        names = [node.name for node in self._topology.nodes]
        while True:
            try:
                over = {n for n in names if self._is_over(n)}
                self._draining.look(frozenset(over))
                if self._dropping is not None:
                    self._dropping.look()
                left = [n for n in names if not self._is_over(n)]
                if not left:
                    return
                self.step(choose(left))
            except Died:
                self.again()

    def _is_over(self, name: str) -> bool:
        total = self._sources[name].total()
        return total is not None and self._draining.progress[name].position >= total and (
            name in self._readers or self._sources[name].latest(0, None) == total
        )  # fmt: skip


@contextmanager
def dying(after: Iterator[int]) -> Iterator[Counter[str]]:
    """Have everything die after so many dangerous moments, again and again: before and after a
    manifest, between two renamed files, in the middle of an append to a log."""
    left = [next(after, -1)]
    deaths: Counter[str] = Counter()

    def moment(name: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            left[0] = next(after, -1)
            deaths[name] += 1
            raise Died(name)

    real_commit, real_move, real_write = EpochLog.commit, Store.move, FileLog._write

    def commit(self: EpochLog, epoch: int, manifest: dict[str, Any]) -> None:
        moment("before manifest")
        real_commit(self, epoch, manifest)
        moment("after manifest")

    def move(self: Store, old: str, new: str) -> None:
        moment("before publishing")
        real_move(self, old, new)

    def write(self: FileLog, lines: list[Mapping[str, Any]], offset: int) -> None:
        try:
            moment("torn append")
        except Died:
            real_write(self, lines[: len(lines) // 2], offset)
            with open(self.path, "ab") as file:
                file.write(b'{"torn": ')
            raise
        real_write(self, lines, offset)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpochLog, "commit", commit)
        patch.setattr(Store, "move", move)
        patch.setattr(FileLog, "_write", write)
        assert keyed_engine.EpochLog is EpochLog
        yield deaths


def expected(topology: Topology, rows: list[Row]) -> dict[str, Counter[tuple[str, Row]]]:
    """By operator the rows that it writes, each with the stream it goes to: by following every row
    through the application. All but the ingest are countdowns."""
    outer = next(node.name for node in topology.nodes if node.is_outer)
    readers: dict[str, list[str]] = {}
    for node in topology.nodes:
        for stream in topology.inputs(node.name):
            readers.setdefault(str(stream), []).append(node.name)
    written: dict[str, Counter[tuple[str, Row]]] = {n.name: Counter() for n in topology.nodes}
    written[outer].update(("results", row) for row in rows)
    front = [(name, row) for row in rows for name in readers.get(f"{outer}.results", [])]
    while front:
        name, (key, left, value) = front.pop()
        stream, row = ("again", (key, left - 1, value)) if left else ("done", (key, 0, value))
        written[name][stream, row] += 1
        front += [(reader, row) for reader in readers.get(f"{name}.{stream}", [])]
    return written


def dropped_and_kept(
    topology: Topology, out: Path
) -> tuple[Counter[Stream], Counter[tuple[Stream, Row]]]:
    """Where files go once they were read: rows that went, by stream, and those that are there."""
    gone: Counter[Stream] = Counter()
    there: Counter[tuple[Stream, Row]] = Counter()
    for name in topology.by_name:
        for manifest in EpochLog(store_of(out / name)).manifests():
            for stream, files in manifest["streams"].items():
                for file, count in files:
                    if not (out / name / file).exists():
                        gone[Stream(name, stream)] += count
                        continue
                    for r in pq.read_table(out / name / file).to_pylist():
                        there[Stream(name, stream), (r["key"], r["left"], r["value"])] += 1
    return gone, there


def found(out: Path, name: str) -> tuple[Counter[tuple[str, Row]], list[tuple[str, int]]]:
    """What an operator wrote, by the files that its manifests name; and which number of its key
    each row was."""
    rows: Counter[tuple[str, Row]] = Counter()
    numbers: list[tuple[str, int]] = []
    for manifest in EpochLog(store_of(out / name)).manifests():
        for stream, files in manifest["streams"].items():
            for file, count in files:
                some = pq.read_table(out / name / file).to_pylist()
                assert len(some) == count
                rows.update((stream, (r["key"], r["left"], r["value"])) for r in some)
                numbers += [(r["key"], r["seen"]) for r in some if "seen" in r]
    return rows, numbers


LOOP = Topology(
    (
        Node("ingest", Ingest("key")),
        Node("rounds", Countdown(), ("ingest", "rounds.again"), 2),
        Node("last", Countdown(), ("ingest", "rounds.done"), 1),
    )
)
ROWS: list[Row] = [(f"k{i % 7}", i % 4, i) for i in range(500)]


def check_run(topology: Topology, rows: list[Row], out: Path) -> None:
    """Every row where it belongs, once, and the verification says so, too."""
    wanted = expected(topology, rows)
    for name, rows_of_it in wanted.items():
        assert found(out, name)[0] == rows_of_it, name
    verified = verify_topology(out)
    assert verified.is_clean
    for check in verified.streams.values():
        assert (check.committed, check.waiting) == (check.read, 0)
