"""The catalogue of live queries against a plain dictionary, batch by batch, through restarts."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.engine import catalogue as module
from geoflux.engine.catalogue import Catalogue, rebuilt
from geoflux.engine.records import REGISTER, TERMINATE, Records
from geoflux.operators.clock import Clock
from geoflux.operators.deltas import write_deltas
from geoflux.operators.queries import QUERY_SCHEMA
from geoflux.plan import GridPlan
from geoflux.spatial.grid import Grid
from geoflux.spatial.space import Space
from geoflux.state.store import Store

WHERE = (Grid(Space("planar", 0.0, 0.0, 1e6, 1.0), 8, 1), GridPlan.initial(8, 1, 3))
OPS = st.tuples(
    st.sampled_from([REGISTER, REGISTER, TERMINATE]),
    st.sampled_from(["a", "b", "c", "aa", "bb", "cc", "ccc", "", "dddd", "é"]),
    st.one_of(st.none(), st.integers(0, 30)),
)
BATCHES = st.lists(
    st.tuples(
        st.lists(OPS, max_size=8),
        st.one_of(st.none(), st.integers(0, 6)),
        st.booleans(),
    ),
    max_size=8,
)
"""Per batch: records (operation, id, valid_until), how far the watermark moves (``None``: there is
none yet), and whether the process is restarted afterwards."""


@dataclass
class Model:
    """What must be live: id to (tag of the registration, valid_until)."""

    live: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    def apply(
        self, batch: list[tuple[int, str, int | None]], tags: list[int], watermark: int | None
    ) -> tuple[set[int], Counter[tuple[str, str]]]:
        """Tags of what ended of the queries that were live before; refusals by code and id."""
        before = {tag for tag, _ in self.live.values()}
        refused: Counter[tuple[str, str]] = Counter()
        for name, (_, until) in list(self.live.items()):
            if watermark is not None and until is not None and until < watermark:
                del self.live[name]
        for (op, name, until), tag in zip(batch, tags, strict=True):
            if op == REGISTER and name in self.live:
                refused["duplicate_id", name] += 1
            elif op == REGISTER:
                self.live[name] = (tag, until)
            elif name in self.live:
                del self.live[name]
            else:
                refused["unknown_id", name] += 1
        return before - {tag for tag, _ in self.live.values()}, refused


def records_of(batch: list[tuple[int, str, int | None]], tags: list[int]) -> Records:
    rows: list[dict[str, Any]] = [
        dict.fromkeys(QUERY_SCHEMA.names)
        | {"number": 0, "id": name, "kind": 0, "x0": float(tag), "y0": 0.0, "x1": float(tag)}
        | {"y1": 0.0, "valid_until": until if op == REGISTER else None}
        for (op, name, until), tag in zip(batch, tags, strict=True)
    ]
    table = pa.Table.from_pylist(rows, schema=QUERY_SCHEMA)
    return Records(np.array([op for op, _, _ in batch], np.uint8), table, [])


def tags_of(rows: pa.Table) -> list[int]:
    return [int(x) for x in rows.column("x0").to_pylist()]


def live_of(catalogue: Catalogue) -> dict[str, tuple[int, int | None]]:
    rows = catalogue.live_rows()
    assert len(rows) == len(catalogue)
    assert rows.column("number").to_pylist() == sorted(rows.column("number").to_pylist())
    return {
        row["id"]: (int(row["x0"]), row["valid_until"])
        for row in rows.select(["id", "x0", "valid_until"]).to_pylist()
    }


def bad_hash(ids: Any) -> npt.NDArray[np.uint64]:
    return np.array([len(name) % 3 for name in ids.to_pylist()], np.uint64)


@pytest.mark.parametrize("merge_at", [1, 3, 20_000])
@pytest.mark.parametrize("hashed", [None, bad_hash], ids=["hash", "collisions"])
@settings(max_examples=35)
@given(batches=BATCHES)
def test_the_catalogue_is_a_dictionary(
    merge_at: int,
    hashed: Any,
    batches: list[tuple[list[tuple[int, str, int | None]], int | None, bool]],
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(module, "_MERGE_AT", merge_at)
        if hashed is not None:
            patch.setattr(module, "_hashed", hashed)
        _follow(Store(folder), batches)


def _follow(
    store: Store, batches: list[tuple[list[tuple[int, str, int | None]], int | None, bool]]
) -> None:
    catalogue, model = Catalogue(store), Model()
    watermark: int | None = None
    tag, used = 0, -1
    for k, (batch, step, restart) in enumerate(batches):
        if step is not None:
            watermark = step if watermark is None else watermark + step
        tags = list(range(tag, tag + len(batch)))
        tag += len(batch)
        before = {t for t, _ in model.live.values()}
        ended, refused = model.apply(batch, tags, watermark)
        applied = catalogue.decide(records_of(batch, tags), Clock(watermark))
        assert Counter((bad.code, bad.row) for bad in applied.refused) == refused
        assert sorted(tags_of(applied.ended)) == sorted(ended)
        alive = {t for t, _ in model.live.values()}
        assert tags_of(applied.came) == sorted(alive - before)
        numbers = applied.came.column("number").to_pylist()
        assert numbers == list(range(used + 1, used + 1 + len(numbers)))
        if len(applied.came) or len(applied.ended):
            name = f"state/{k}.arrow"
            write_deltas(store, name, WHERE, applied.came, applied.ended)
            catalogue.absorb(name)
            used += len(numbers)
        assert live_of(catalogue) == model.live
        assert catalogue.next_number == used + 1
        again = rebuilt(store, catalogue.segments)
        assert again.live_rows().equals(catalogue.live_rows())
        assert again.next_number == catalogue.next_number
        assert (len(again), again.segments) == (len(catalogue), catalogue.segments)
        catalogue = again if restart else catalogue


@pytest.mark.parametrize("merge_at", [10, 20_000])
def test_hundreds_of_ids_through_registration_and_termination(merge_at: int) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(module, "_MERGE_AT", merge_at)
        names = [f"q{i}" for i in range(300)]
        batches: list[Any] = [
            ([(REGISTER, n, None) for n in names[:200]], None, False),
            ([(TERMINATE, n, None) for n in names[50:150]], None, False),
            ([(REGISTER, n, None) for n in names[100:]], None, False),
            ([(op, n, None) for n in names for op in (TERMINATE, REGISTER)], None, False),
            ([(TERMINATE, n, None) for n in reversed(names)], None, False),
        ]
        _follow(Store(folder), batches)
