"""Sets as named arrays and as bytes, and back.

Settled and in order, so that the same rows give the same arrays, whatever was merged or cut in
between: recent rows are sorted, structures follow each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from geoflux.errors import StateError
from geoflux.sketch.set_blocks import Block, Dense
from geoflux.sketch.set_kernels import coupons_of
from geoflux.sketch.set_shape import SetShape

VERSION = 1
"""Changes whenever the meaning of the numbers does."""

Arrays = dict[str, npt.NDArray[Any]]
Bound = tuple[int, int, int]
"""Tree, and the seconds at which a bound begins and ends."""
Blocks = Mapping[Bound, Block]


def to_arrays(shape: SetShape, of_bounds: Blocks, prefix: str) -> Arrays:
    """The sets as plain arrays: one line per tree and bound, then rows, then structures."""
    keys = sorted(of_bounds)
    blocks = [of_bounds[key].settled(shape) for key in keys]
    few = [b.together[0] for b in blocks if b.recent]
    dense = [b.dense for b in blocks if b.dense is not None]
    return {
        prefix + "version": np.array([VERSION], np.int32),
        prefix + "shape": np.frombuffer(json.dumps(asdict(shape)).encode(), np.uint8),
        prefix + "keys": np.array(keys, np.int64).reshape(-1, 3),
        prefix + "rows": np.array([b.rows for b in blocks], np.int64),
        prefix + "items": np.array([b.dense.items if b.dense else -1 for b in blocks], np.int64),
        prefix + "words": _stacked(
            [w[np.lexsort(w.T[::-1])] for w in few], (shape.features,), shape.word_type
        ),
        prefix + "registers": _stacked([d.registers[None] for d in dense], (1 << shape.lg_k,)),
        prefix + "tables": _stacked(
            [d.table[None] for d in dense], (shape.hashes, shape.buckets), np.uint32
        ),
        prefix + "blooms": _stacked([d.bloom[None] for d in dense], ((shape.bits + 7) // 8,)),
    }


def from_arrays(
    arrays: Mapping[str, npt.NDArray[Any]], prefix: str
) -> tuple[SetShape, dict[Bound, Block]]:
    """What :func:`to_arrays` gave; structures stay where they are, nothing is copied."""
    version = int(arrays[prefix + "version"][0])
    if version != VERSION:
        raise StateError(
            f"the sets are of version {version}, this is geoflux with version {VERSION}: "
            "use a new directory, or the geoflux that wrote this one"
        )
    shape = SetShape(**json.loads(arrays[prefix + "shape"].tobytes()))
    words = arrays[prefix + "words"].reshape(-1, shape.features)
    registers = arrays[prefix + "registers"].reshape(-1, 1 << shape.lg_k)
    tables = arrays[prefix + "tables"].reshape(-1, shape.hashes, shape.buckets)
    blooms = arrays[prefix + "blooms"].reshape(-1, (shape.bits + 7) // 8)
    coupons = np.asarray(coupons_of(words), np.uint32)
    blocks: dict[Bound, Block] = {}
    begin = at = 0
    for key, rows, items in zip(
        arrays[prefix + "keys"].reshape(-1, 3).tolist(),
        arrays[prefix + "rows"].tolist(), arrays[prefix + "items"].tolist(), strict=True,
    ):  # fmt: skip
        tree, first, last = key
        if items >= 0:
            dense = Dense(registers[at], tables[at], blooms[at], items)
            blocks[tree, first, last] = Block(rows, (), dense)
            at += 1
        else:
            end = begin + rows
            blocks[tree, first, last] = Block(rows, ((words[begin:end], coupons[begin:end]),))
            begin = end
    return shape, blocks


def to_bytes(shape: SetShape, blocks: Blocks) -> bytes:
    """The same sets give the same bytes: version, length, each array with its name and shape."""
    parts = []
    for name, array in to_arrays(shape, blocks, "").items():
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        head = json.dumps([name, little.dtype.str, list(little.shape), little.nbytes]).encode()
        parts += [len(head).to_bytes(4, "little"), head, little.tobytes()]
    body = b"".join(parts)
    return bytes([VERSION]) + len(body).to_bytes(8, "little") + body


def from_bytes(data: bytes) -> tuple[SetShape, dict[Bound, Block]]:
    """What :func:`to_bytes` gave."""
    if not data or data[0] != VERSION:
        raise StateError(
            f"these bytes are no sets of version {VERSION}: use the geoflux that wrote them"
        )
    if len(data) != 9 + int.from_bytes(data[1:9], "little"):
        raise StateError("these bytes of sets were cut short: restore the file")
    arrays: Arrays = {}
    at = 9
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        name, kind, shape, length = json.loads(data[at + 4 : at + 4 + size])
        at += 4 + size
        flat = np.frombuffer(data, np.uint8, length, at)
        array = np.frombuffer(flat.tobytes(), np.dtype(kind)).reshape(shape)  # aligned
        arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
        at += length
    return from_arrays(arrays, "")


def _stacked(
    parts: list[npt.NDArray[Any]], shape: tuple[int, ...], kind: Any = np.uint8
) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty((0, *shape), kind)
