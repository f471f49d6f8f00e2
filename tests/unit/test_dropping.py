"""Files of streams go once everybody has read them, and no earlier."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoflux import Ingest, Node, Queries, Topology, WindowedGroupBy
from geoflux.engine.log_content import Entry
from geoflux.engine.staging import epoch_of
from geoflux.state.store import Store
from geoflux.topology import dropping
from geoflux.topology.draining import Progress
from geoflux.topology.dropping import Dropping
from streams_by_hand import Countdown

TOPOLOGY = Topology(
    (
        Node("ingest", Ingest()),
        Node("rounds", Countdown(), reads=("ingest", "rounds.again")),
        Node("places", Queries(), reads="ingest"),
        Node("last", WindowedGroupBy("key", "value", rows=2), reads=("rounds.done", "places.matches")),
    )
)  # fmt: skip
ROWS = 10


class Read:
    """The log of an operator: files of ten rows each."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def entries(self, start: int = 0) -> Iterator[Entry]:
        for n in range(start, len(self.paths)):
            yield Entry(n, self.paths[n], "parquet", 0, ROWS, n * ROWS, 1, 0.0)


def logs(folder: Path, epochs: int) -> tuple[Store, dict[str, Read]]:
    kinds = {
        "ingest": "ingest/results/e{:08d}-s0-e1.parquet",
        "again": "rounds/results/e{:08d}-s0-e1-again.parquet",
        "done": "rounds/results/e{:08d}-s0-e1-done.parquet",
        "matches": "places/matches/e{:08d}-s0-e1.parquet",
    }
    files = {kind: [name.format(n) for n in range(epochs)] for kind, name in kinds.items()}
    for path in (path for some in files.values() for path in some):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    own = (folder / "last/results/e0-s0.parquet", folder / "places/counts/e0-s0.parquet")
    for path in own:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    mixed = [path for pair in zip(files["ingest"], files["again"], strict=True) for path in pair]
    readers = {
        "rounds": Read(mixed), "places": Read(files["ingest"]),
        "last": Read([*files["done"], *files["matches"]]),
    }  # fmt: skip
    return Store(str(folder)), readers


def there(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}


@given(
    st.lists(st.tuples(st.sampled_from(["rounds", "places", "last"]), st.integers(0, 25),
                       st.booleans()), max_size=12),
    st.integers(1, 3),
)  # fmt: skip
def test_what_is_there_is_what_somebody_has_yet_to_read(
    steps: list[tuple[str, int, bool]], last: int
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        patch.setattr(dropping, "_BETWEEN_NOTES", 2)
        store, readers = logs(folder, 3)
        everything = there(folder)
        progress = {name: Progress(epoch=last) for name in TOPOLOGY.by_name}
        drop = Dropping(TOPOLOGY, readers, store, progress)
        for who, further, restarted in steps:
            progress[who] = Progress(last, progress[who].position + further)
            if restarted:
                drop = Dropping(TOPOLOGY, readers, store, progress)
            drop.look()
            left = {
                path
                for reader, read in readers.items()
                for n, path in enumerate(read.paths)
                if (n + 1) * ROWS > progress[reader].position or epoch_of(path) >= last
            }
            outputs = {"last/results/e0-s0.parquet", "places/counts/e0-s0.parquet"}
            assert there(folder) == left | outputs
        assert there(folder) <= everything
