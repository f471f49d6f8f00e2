"""Any application of splits, joins and loops, dying at any point: every row where it belongs, once."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from geoflux import topology_api
from geoflux.engine.staging import epoch_of
from geoflux.errors import StateError
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import store_of
from geoflux.topology import Ingest, Node, Stream, Topology
from geoflux.topology.checks import problems
from streams_by_hand import Countdown
from topologies_by_hand import Inline, Row, config_of, dropped_and_kept, dying, expected, found

ROWS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 2), st.integers(0, 99)),
    min_size=1,
    max_size=10,
)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """One to four countdowns behind an ingest. What goes round may come back anywhere; what is done
    only goes on, or it would go round for ever."""
    count = draw(st.integers(1, 4))
    nodes = [Node("ingest", Ingest(draw(st.sampled_from(["", "key"]))))]
    for place in range(count):
        before = ["ingest", *(f"n{i}.done" for i in range(place))]
        anywhere = [f"n{i}.again" for i in range(count)]
        reads = draw(st.lists(st.sampled_from(before), min_size=1, max_size=2, unique=True))
        reads += draw(st.lists(st.sampled_from(anywhere), max_size=2, unique=True))
        nodes.append(Node(f"n{place}", Countdown(), tuple(reads), draw(st.integers(1, 3))))
    return Topology(tuple(nodes))


@settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    topologies(), ROWS, st.integers(1, 40), st.integers(0, 1 << 30),
    st.lists(st.integers(1, 60), max_size=6),
)  # fmt: skip
def test_every_row_is_where_it_belongs(
    topology: Topology, rows: list[Row], epoch_events: int, seed: int, deaths: list[int]
) -> None:
    assert problems(topology) == []
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name, dying(iter(deaths)):
        folder, out = Path(name), Path(name) / "out"
        running = Inline(topology, config_of(folder, rows, epoch_events), out)
        running.run(draw.choice)
        wanted = expected(topology, rows)
        for node in topology.nodes:
            written, numbers = found(out, node.name)
            assert written == wanted[node.name]
            if node.name != "ingest":
                keys = Counter(row[0] for _, row in wanted[node.name].elements())
                assert sorted(numbers) == sorted(
                    (key, n + 1) for key, count in keys.items() for n in range(count)
                )
        verified = topology_api.verify_topology(out)
        assert verified.is_clean
        for check in verified.streams.values():
            assert check.committed == check.read
            assert check.waiting == 0


@settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    topologies(), ROWS, st.integers(1, 40), st.integers(0, 1 << 30),
    st.lists(st.integers(1, 60), max_size=6),
)  # fmt: skip
def test_streams_that_were_read_go_and_nothing_is_missed(
    topology: Topology, rows: list[Row], epoch_events: int, seed: int, deaths: list[int]
) -> None:
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name, dying(iter(deaths)):
        folder, out = Path(name), Path(name) / "out"
        config = config_of(folder, rows, epoch_events)
        config = replace(config, output=replace(config.output, streams="drop"))
        Inline(topology, config, out).run(draw.choice)
        gone, there = dropped_and_kept(topology, out)
        lasts = {
            name: max((m["epoch"] for m in EpochLog(store_of(out / name)).manifests()), default=0)
            for name in topology.by_name
        }
        for path in (path for name in lasts for path in (out / name / "results").glob("*")):
            name = path.parent.parent.name
            stream = path.stem.rpartition("-")[2] if name != "ingest" else "results"
            if topology.readers(Stream(name, stream)):
                assert epoch_of(str(path)) == lasts[name]
        for node, written in expected(topology, rows).items():
            for stream in topology.node(node).work.streams:
                mine = Counter({row: n for (s, row), n in written.items() if s == stream})
                kept = {row: n for (s, row), n in there.items() if s == Stream(node, stream)}
                if topology.readers(Stream(node, stream)):
                    assert gone[Stream(node, stream)] + sum(kept.values()) == mine.total()
                else:
                    assert kept == mine
        if rows:
            with pytest.raises(StateError, match="keep"):
                topology_api.verify_topology(out)
