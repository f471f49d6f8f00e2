"""States of a keyed operator, open in a worker and saved as segments.

A state is a base, saved whole, and journals: the rows that came since, which are processed again,
in the same batches, to get it back. So what an epoch writes grows with its rows and not with the
state. A partition that was made of others has a state that is cut out of theirs, and joined, when
it is opened; with its next change it is saved whole. Invariant: a
cached state is taken out before it is changed, and put back under the references that stand for it
then; an attempt that is never committed leaves nothing that anybody would find.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from geoflux.engine.keyed_heirs import origins
from geoflux.engine.keyed_rows import batches_of, write_rows
from geoflux.errors import OperatorError
from geoflux.operators.keyed import Divisible, Operator
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
    return opened(store, operator, refs)


def opened(store: Store, operator: Operator[Any], refs: Sequence[Ref]) -> Any:
    """The state that some references of one partition stand for, as a value of its own; also for
    whoever asks an operator's states and runs nothing."""
    if not refs or refs[0].prefix is None:
        return replayed(store, operator, refs)
    if not isinstance(operator, Divisible):
        raise OperatorError(
            f"{type(operator).__name__} cannot cut its states, and partitions were split or merged "
            "here; it needs the methods of Divisible"
        )
    pieces = []
    for origin, known, areas in origins(refs):
        state = _remembered(store, origin, known)
        if state is None:
            state = replayed(store, operator, known)
        pieces += [operator.cut(state, *area) for area in areas]
    return pieces[0] if len(pieces) == 1 else operator.joined(pieces)


def replayed(store: Store, operator: Operator[Any], refs: Sequence[Ref], state: Any = None) -> Any:
    """What a base and its journals come to; or journals that follow a state."""
    state = operator.empty() if state is None else state
    for ref in refs:
        if ref.kind == "state":
            prefix = f"{ref.partition}/"
            columns = reopened(store, ref.segment).columns
            arrays = {n.removeprefix(prefix): a for n, a in columns.items() if n.startswith(prefix)}
            state = operator.install(arrays)
        else:
            for rows in batches_of(store, ref):
                state, _ = operator.process(state, rows)
    return state


def _remembered(store: Store, partition: int, refs: tuple[Ref, ...]) -> Any | None:
    """The state of a retired partition, if it is still in memory here; it stays, for others that
    are cut out of it."""
    with _lock:
        known = _cache.get((store.root, partition))
    return known[1] if known is not None and known[0] == refs else None


def put_back(store: Store, partition: int, refs: tuple[Ref, ...], state: Any) -> None:
    """Keep a state for the next epoch."""
    with _lock:
        _cache[store.root, partition] = refs, state
        while len(_cache) > _CACHED:
            _cache.popitem(last=False)


def forget_others(store: Store, partitions: Collection[int]) -> None:
    """Give the memory of states back whose partitions are no more; ``partitions`` are all that
    there are."""
    with _lock:
        for root, partition in list(_cache):
            if root == store.root and partition not in partitions:
                del _cache[root, partition]


def dropped(store: Store, partition: int) -> None:
    """Give the memory of a state back."""
    with _lock:
        _cache.pop((store.root, partition), None)


def saved(
    store: Store, operator: Operator[Any], slot: int,
    changed: Mapping[int, tuple[tuple[Ref, ...], Any, pa.Table]], batch: int,
) -> dict[int, tuple[Ref, ...]]:  # fmt: skip
    """Save changed states: given are, by partition, the references so far, the state now, and the
    rows in between, which were processed in batches of so many. Returns the references from now
    on."""
    if operator.stateless:
        return dict.fromkeys(changed, ())
    whole, journal = {}, {}
    refs: dict[int, tuple[Ref, ...]] = {}
    base, log = unique_name("state", f"keyed-s{slot}"), unique_name("state", f"journal-s{slot}")
    for partition, (before, state, rows) in changed.items():
        is_heir = bool(before) and before[0].prefix is not None
        if is_heir or len(before) >= _MOST_JOURNALS or rows.nbytes >= operator.size(state):
            for name, array in operator.extract(state).items():
                whole[f"{partition}/{name}"] = array
            refs[partition] = (Ref("state", base, partition),)
        else:
            journal[partition] = rows
            refs[partition] = (*before, Ref("journal", log, partition))
    if whole:
        write_segment(store, base, whole, {"kind": "keyed"})
    if journal:
        write_rows(store, log, journal, batch=batch)
    return refs
