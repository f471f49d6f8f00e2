"""Descriptions of applications: what they say, and the sentences for what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from geoflux import Config, WindowedGroupBy
from geoflux.errors import ConfigError
from geoflux.topology import Ingest, Node, Queries, Stream, Topology
from geoflux.topology.checks import check, problems
from geoflux.topology.columns import read_columns, with_ids
from geoflux.topology.written import noted, restored, topology_of
from streams_by_hand import Countdown

SPEEDS = WindowedGroupBy("car", "speed", "mean", rows=10)
EVENTS = pa.schema(
    [("id", pa.int64()), ("car", pa.string()), ("speed", pa.float64()), ("time", pa.int64())]
)
LOOP = Topology(
    (
        Node("ingest", Ingest("key")),
        Node("rounds", Countdown(), reads=("ingest", "rounds.again")),
        Node("last", Countdown(), reads="rounds.done"),
    )
)


def some(*nodes: Node) -> Topology:
    return Topology(nodes)


def configs(topology: Topology) -> dict[str, Config]:
    return {node.name: Config() for node in topology.nodes}


def test_who_feeds_whom() -> None:
    assert problems(LOOP) == []
    assert LOOP.inputs("rounds") == (Stream("ingest", "results"), Stream("rounds", "again"))
    assert LOOP.feeds == {
        "ingest": frozenset({"rounds"}), "rounds": frozenset({"rounds", "last"}),
        "last": frozenset(),
    }  # fmt: skip
    assert LOOP.loop("rounds") == {"rounds"}
    assert LOOP.before({"rounds"}) == {"ingest"}
    far = some(
        Node("in", Ingest()), Node("a", Countdown(), reads=("in", "b.again")),
        Node("b", Countdown(), reads="a.again"),
    )  # fmt: skip
    assert far.loop("a") == far.loop("b") == {"a", "b"}
    assert far.before(far.loop("b")) == {"in"}


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ((), "has no operators"),
        ((Node("2x", Ingest()),), "a name begins with a letter"),
        ((Node("source", Ingest()),), "means something else"),
        ((Node("a", Ingest()), Node("a", Ingest())), "two operators are called 'a'"),
        ((Node("a", Ingest(), slots=0),), "slots = 0: expected a number from 1 to 4096"),
        ((Node("a", Ingest(), reads=()),), "it reads nothing"),
        ((Node("a", Ingest(), reads="a"),), "an ingest reads from outside"),
        ((Node("ingest", Ingest()), Node("q", Queries(), reads="ingst")), "did you mean 'ingest'"),
        ((*LOOP.nodes, Node("x", SPEEDS, reads="rounds")), 'say which: "rounds.again" or "rounds.do'),
        ((*LOOP.nodes, Node("x", SPEEDS, reads="rounds.up")), "no stream 'up', only again and done"),
        ((*LOOP.nodes, Node("x", SPEEDS, reads=("ingest", "ingest"))), "ingest.results twice"),
        ((*LOOP.nodes, Node("x", SPEEDS, reads=("ingest", "source"))), "of kind ingest bring the out"),
        ((Node("a", Countdown(), reads="a.again"),), "no operator reads from outside"),
        (
            (Node("in", Ingest()), Node("a", Countdown(), reads="a.again")),
            "nothing from outside ever comes to it",
        ),
        (
            (Node("in", Ingest()), Node("q", Queries(), reads=("in", "w.again")),
             Node("w", Countdown(), reads="q.aggregates")),
            "which a loop would not have",
        ),
        ((Node("a", Countdown(streams=("again",))),), "needs no column @stream"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(nodes: tuple[Node, ...], sentence: str) -> None:
    with pytest.raises(ConfigError) as told:
        check(Topology(nodes))
    assert sentence in str(told.value)


def test_columns_of_several_inputs_are_one_set() -> None:
    topology = some(
        Node("in", Ingest("car")), Node("speeds", SPEEDS, reads="in"),
        Node("again", WindowedGroupBy("key", "value", rows=2), reads=("speeds", "in")),
        Node("places", Queries(), reads="in"),
        Node("met", Countdown("query_id", columns=()), reads="places.matches"),
    )  # fmt: skip
    outside = EVENTS.append(pa.field("lon", pa.float64())).append(pa.field("lat", pa.float64()))
    read, wrong = read_columns(topology, configs(topology), {"in": outside})
    assert read["speeds"].schema == read["places"].schema == outside
    assert "speeds.results" in " ".join(wrong), "ids are text there and numbers in the events"
    assert read["again"].common == {"id"}
    assert read["again"].schema.names == [
        "id",
        "key",
        "value",
        "car",
        "speed",
        "time",
        "lon",
        "lat",
    ]
    assert read["met"].schema.field("event_id").type == pa.int64()
    assert with_ids(topology.node("met"), Config(), read["met"]).source.id == "@position"
    assert with_ids(topology.node("again"), Config(), read["again"]).source.id == "id"


def test_columns_that_nobody_has() -> None:
    topology = some(
        Node("in", Ingest("car")), Node("wrong", WindowedGroupBy("cra", "speed", rows=2), reads="in")
    )  # fmt: skip
    _, wrong = read_columns(topology, configs(topology), {"in": EVENTS})
    assert wrong == [
        "operator 'wrong' needs the column 'cra', which in has not; there are id, car, speed, time"
    ]
    _, unknown = read_columns(topology, configs(topology), {"in": pa.schema([])})
    assert len(unknown) == 1
    assert "nobody knows the columns" in unknown[0]


def test_every_input_must_have_what_no_row_can_do_without() -> None:
    topology = some(
        Node("in", Ingest("car")), Node("rounds", Countdown("car", ()), reads="in"),
        Node("next", Countdown("car", ()), reads=("in", "rounds.done")),
    )  # fmt: skip
    read, wrong = read_columns(topology, configs(topology), {"in": EVENTS})
    assert wrong == [
        "operator 'next' needs the column 'car', which not every one of in or rounds.done has; "
        "there are id, car, speed, time, key, left, value, seen"
    ]
    assert with_ids(topology.node("next"), Config(), read["next"]).source.id == "@position"


def test_the_tables_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine_for_tables.py").write_text(
        "from streams_by_hand import Countdown\nclass Mine(Countdown):\n    pass\nNumber = 3\n"
    )
    tables: list[dict[str, Any]] = [
        {"name": "in", "kind": "ingest", "key": "car", "slots": 2},
        {"name": "speeds", "kind": "group-by", "reads": ["in"], "key": "car", "value": "speed",
         "rows": 10, "flux": {"partitions": 8}},
        {"name": "places", "kind": "queries", "reads": "in"},
        {"name": "own", "class": "mine_for_tables:Mine", "reads": ["speeds"],
         "with": {"key": "key", "columns": ["value"]}},
    ]  # fmt: skip
    topology = topology_of(tables, tmp_path)
    assert [node.kind for node in topology.nodes] == ["ingest", "group-by", "queries", "own"]
    assert topology.node("speeds").work == SPEEDS
    assert topology.node("own").work.columns == ("value",)  # type: ignore[union-attr]
    again = restored(noted(topology))
    assert noted(again) == noted(topology)
    assert [n.work for n in again.nodes] == [n.work for n in topology.nodes]
    for change, sentence in (
        ({"class": "mine_for_tables:Number"}, "derived from geoflux.Operator"),
        ({"class": "mine_for_tables:None"}, "mine_for_tables has no None"),
        ({"class": "nowhere_at_all:X"}, "install the module, or put it beside the file"),
        ({"class": "mine"}, 'expected "module:Class"'),
        ({"with": {"colour": 1}}, "does not take what was given"),
        ({"kind": "ingest"}, "expected either kind"),
        ({"name": 3}, "operator number 4: it has no name"),
        ({"reads": 3}, "expected names"),
        ({"colour": 1}, "colour is unknown here"),
        ({"flux": 3}, "expected a table of settings"),
    ):
        with pytest.raises(ConfigError) as told:
            topology_of([*tables[:3], tables[3] | change], tmp_path)
        assert sentence in str(told.value)


def test_an_operator_that_cannot_be_noted_is_handed_over() -> None:
    own = WindowedGroupBy("car", "speed", lambda values, starts, ends: ends - starts, rows=2)
    values = noted(some(Node("a", own)))
    with pytest.raises(ConfigError, match="hand it over from Python"):
        restored(values)
    assert restored(values, {"a": own}).node("a").work is own
