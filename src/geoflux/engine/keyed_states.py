"""States of a keyed operator, open in a worker and saved as segments.

A state is a base, saved whole, and journals: the rows that came since, which are processed again
to get it back. So what an epoch writes grows with its rows and not with the state. Invariant: a
cached state is taken out before it is changed, and put back under the references that stand for it
then; an attempt that is never committed leaves nothing that anybody would find.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from geoflux.engine.keyed_rows import read_rows, write_rows
from geoflux.operators.keyed import Operator
from geoflux.state.refs import Ref
from geoflux.state.segments import reopened, unique_name, write_segment
from geoflux.state.store import Store

_MOST_JOURNALS = 8
_CACHED = 4096
_cache: OrderedDict[tuple[str, int], tuple[tuple[Ref, ...], Any]] = OrderedDict()
_lock = threading.Lock()


def taken(store: Store, operator: Operator[Any], partition: int, refs: tuple[Ref, ...]) -> Any:
    """The state that some references stand for, to be changed by the caller."""
    with _lock:
        known = _cache.pop((store.root, partition), None)
    if known is not None and known[0] == refs:
        return known[1]
    state = operator.empty()
    for ref in refs:
        if ref.kind == "state":
            prefix = f"{ref.partition}/"
            columns = reopened(store, ref.segment).columns
            arrays = {n.removeprefix(prefix): a for n, a in columns.items() if n.startswith(prefix)}
            state = operator.install(arrays)
        else:
            state, _ = operator.process(state, read_rows(store, ref))
    return state


def put_back(store: Store, partition: int, refs: tuple[Ref, ...], state: Any) -> None:
    """Keep a state for the next epoch."""
    with _lock:
        _cache[store.root, partition] = refs, state
        while len(_cache) > _CACHED:
            _cache.popitem(last=False)


def dropped(store: Store, partition: int) -> None:
    """Give the memory of a state back."""
    with _lock:
        _cache.pop((store.root, partition), None)


def saved(
    store: Store, operator: Operator[Any], slot: int,
    changed: Mapping[int, tuple[tuple[Ref, ...], Any, pa.Table]],
) -> dict[int, tuple[Ref, ...]]:  # fmt: skip
    """Save changed states: given are, by partition, the references so far, the state now, and the
    rows in between. Returns the references from now on."""
    if operator.stateless:
        return dict.fromkeys(changed, ())
    whole, journal = {}, {}
    refs: dict[int, tuple[Ref, ...]] = {}
    base, log = unique_name("state", f"keyed-s{slot}"), unique_name("state", f"journal-s{slot}")
    for partition, (before, state, rows) in changed.items():
        if len(before) >= _MOST_JOURNALS or rows.nbytes >= operator.size(state):
            for name, array in operator.extract(state).items():
                whole[f"{partition}/{name}"] = array
            refs[partition] = (Ref("state", base, partition),)
        else:
            journal[partition] = rows
            refs[partition] = (*before, Ref("journal", log, partition))
    if whole:
        write_segment(store, base, whole, {"kind": "keyed"})
    if journal:
        write_rows(store, log, journal)
    return refs
