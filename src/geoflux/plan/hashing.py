"""Hashes of keys that are the same on every machine, in every process, for ever.

Plans are kept in logs and read by others, so the built-in ``hash`` (salted per process) will not
do. Equal keys hash alike whatever their storage: integers of every width and booleans like 64-bit
integers, floats like doubles, strings like their bytes, dictionary-encoded columns like their
values, points in time like their microseconds. All nulls hash alike. Never change the constants:
a plan in a log would send keys to other partitions.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

HashArray = npt.NDArray[np.uint64]

_NULL = np.uint64(0x9AE16A3B2F90404F)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_PER_MICROSECOND = {"s": 1_000_000, "ms": 1_000, "us": 1}


def stable_hash(keys: Any) -> HashArray:
    """64 well-mixed bits per key of a pyarrow or NumPy array.

    >>> stable_hash(np.array([1, 2], np.int8)) == stable_hash(pa.array([1, 2]))
    array([ True,  True])
    """
    array = keys if isinstance(keys, (pa.Array, pa.ChunkedArray)) else pa.array(keys)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if len(array) == 0:
        return np.empty(0, np.uint64)
    if pa.types.is_dictionary(array.type):
        hashes = _of_dictionary(array)
    else:
        hashes = _of_values(array)
    if array.null_count:
        hashes[array.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _of_dictionary(array: Any) -> HashArray:
    """The hashes of the few values, looked up for each key."""
    values = stable_hash(array.dictionary)
    if not values.size:
        return np.full(len(array), _NULL)
    return values[array.indices.fill_null(0).to_numpy(zero_copy_only=False)]


def _of_values(array: Any) -> HashArray:
    """Hashes of a plain array; those of nulls mean nothing yet."""
    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), _NULL)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return _mixed(_numbers(array, 0).astype(np.int64).view(np.uint64))
    if pa.types.is_floating(kind):
        numbers = _numbers(array, 0.0).astype(np.float64) + 0.0  # -0.0 is 0.0
        numbers[np.isnan(numbers)] = np.nan
        return _mixed(numbers.view(np.uint64))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _mixed(_microseconds(array).view(np.uint64))
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return _mixed(_numbers(array.view(width), 0).astype(np.int64).view(np.uint64))
    if _is_text(kind):
        return _of_bytes(array)
    raise TypeError(f"keys of type {kind} cannot be hashed: cast them to text or integers")


def _numbers(array: Any, filler: float) -> npt.NDArray[Any]:
    filled = array.fill_null(pa.scalar(filler).cast(array.type)) if array.null_count else array
    numbers: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return numbers


def _microseconds(array: Any) -> npt.NDArray[np.int64]:
    """Microseconds since 1970; what overflows wraps around, as good a hash as any."""
    if pa.types.is_date32(array.type):
        days = _numbers(array.view(pa.int32()), 0).astype(np.int64)
        return days * np.int64(86_400_000_000)
    unit = "ms" if pa.types.is_date64(array.type) else array.type.unit
    ticks = _numbers(array.view(pa.int64()), 0).astype(np.int64)
    if unit == "ns":
        return ticks // 1_000
    return ticks * np.int64(_PER_MICROSECOND[unit])


def _is_text(kind: Any) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
            pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
            pa.types.is_fixed_size_binary,
        )
    )  # fmt: skip


def _of_bytes(array: Any) -> HashArray:
    plain = array.cast(pa.large_binary())
    _, offsets, data = plain.buffers()
    starts = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    letters = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return np.asarray(_hash_bytes(starts, letters), np.uint64)


def _mixed(values: npt.NDArray[np.uint64]) -> HashArray:
    return np.asarray(_mix_all(values), np.uint64)


@numba.njit(cache=True, inline="always")
def _mix(value: Any) -> Any:
    """The finaliser of SplitMix64: every bit of the input changes half of the output's."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@numba.njit(cache=True)
def _mix_all(values: Any) -> Any:
    out = np.empty(values.size, np.uint64)
    for i in range(values.size):
        out[i] = _mix(values[i] + _SEED)
    return out


@numba.njit(cache=True)
def _hash_bytes(starts: Any, letters: Any) -> Any:
    """Eight bytes at a time, the lowest first on every machine; the length goes in at the start."""
    out = np.empty(starts.size - 1, np.uint64)
    for i in range(out.size):
        begin, end = starts[i], starts[i + 1]
        state = _mix(np.uint64(end - begin) + _SEED)
        for at in range(begin, end, 8):
            word = np.uint64(0)
            for k in range(min(8, end - at)):
                word |= np.uint64(letters[at + k]) << np.uint64(8 * k)
            state = _mix((state ^ word) + _SEED)
        out[i] = state
    return out
