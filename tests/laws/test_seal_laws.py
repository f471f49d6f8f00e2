"""Laws of sealed files: what was written comes back, anything else is noticed, no nonce twice."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st

from geoflux.errors import StateError
from geoflux.state.seal import MARK, Seal, SealedOutput
from geoflux.state.segments import read_segment, write_segment
from geoflux.state.store import Store

SEAL = Seal.new(bytes(range(32)))
CHUNK, TAG, HEAD = 16, 16, len(MARK) + 32
DATA = st.binary(max_size=4 * CHUNK)


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("geoflux.state.seal.CHUNK", CHUNK)
        yield


def opened(data: bytes, name: str = "state/a", seal: Seal = SEAL) -> bytes:
    return bytes(seal.unsealed(name, data, "there"))


def refused(data: bytes, name: str = "state/a", seal: Seal = SEAL) -> None:
    with pytest.raises(StateError, match="there is not"):
        opened(data, name, seal)


@settings(max_examples=200)
@given(st.lists(DATA, max_size=5))
def test_what_is_written_in_any_pieces_comes_back(pieces: list[bytes]) -> None:
    sink: list[bytes] = []

    class Sink:
        def write(self, data: Any) -> None:
            sink.append(bytes(data))

    output = SealedOutput(SEAL, "state/a", Sink())
    for piece in pieces:
        assert output.write(piece) == len(piece)
    assert output.tell() == sum(map(len, pieces))
    whole, begun = b"".join(pieces), b"".join(sink)
    chunks = max(1, -(-len(whole) // CHUNK))
    refused(begun)  # what was not finished is no file, however much of it is there
    output.finish()
    assert opened(b"".join(sink)) == whole
    assert len(b"".join(sink)) == HEAD + len(whole) + chunks * TAG
    assert opened(SEAL.sealed("state/a", whole)) == whole


@settings(max_examples=200)
@given(DATA, st.data())
def test_a_changed_bit_is_noticed(data: bytes, draw: st.DataObject) -> None:
    sealed = bytearray(SEAL.sealed("state/a", data))
    sealed[draw.draw(st.integers(0, len(sealed) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    refused(bytes(sealed))


@settings(max_examples=200)
@given(DATA, st.data())
def test_a_file_that_is_shorter_or_longer_is_noticed(data: bytes, draw: st.DataObject) -> None:
    sealed = SEAL.sealed("state/a", data)
    refused(sealed[: draw.draw(st.integers(0, len(sealed) - 1))])
    refused(sealed + draw.draw(st.binary(min_size=1, max_size=3 * CHUNK)))


@settings(max_examples=100)
@given(st.integers(2, 5), st.data())
def test_chunks_in_another_order_are_noticed(count: int, draw: st.DataObject) -> None:
    sealed = SEAL.sealed("state/a", bytes(count * CHUNK))  # all chunks say the same
    size = CHUNK + TAG
    chunks = [sealed[HEAD + k * size :][:size] for k in range(count)]
    picked = draw.draw(st.lists(st.integers(0, count - 1), max_size=count + 1))
    mixed = sealed[:HEAD] + b"".join(chunks[k] for k in picked)
    if picked == list(range(count)):
        assert opened(mixed) == bytes(count * CHUNK)
    else:
        refused(mixed)


@given(DATA)
def test_what_belongs_elsewhere_is_noticed(data: bytes) -> None:
    sealed = SEAL.sealed("state/a", data)
    refused(sealed, name="state/b")
    refused(sealed, seal=Seal.new(bytes(range(32))))  # another run with the same key file
    refused(sealed, seal=Seal(b"x" * 32, b""))
    other = SEAL.sealed("state/a", data)  # another attempt at the same file
    assert other != sealed
    refused(sealed[:HEAD] + other[HEAD:])
    assert opened(sealed) == opened(other) == data


def test_no_nonce_is_used_twice_with_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over many files of many sizes, the same names again and again as attempts would."""
    used: list[tuple[bytes, bytes]] = []

    class Watching:
        def __init__(self, key: bytes) -> None:
            self._key, self._aes = key, AESGCM(key)

        def encrypt_into(self, nonce: bytes, *rest: Any) -> int:
            used.append((self._key, nonce))
            return self._aes.encrypt_into(nonce, *rest)

    monkeypatch.setattr("cryptography.hazmat.primitives.ciphers.aead.AESGCM", Watching)
    for attempt in range(50):
        for name in ("state/a", "state/b"):
            SEAL.sealed(name, bytes(attempt))
    assert len(used) > 200
    assert len(set(used)) == len(used)
    assert len({key for key, _ in used}) == 100, "every file has a key of its own"


@given(st.lists(st.integers(), min_size=1, max_size=50), st.booleans())
def test_a_sealed_segment_gives_back_its_arrays_and_is_only_decrypted_once(
    values: list[int], again: bool
) -> None:
    import pyarrow as pa

    given_text = pa.array([str(value) for value in values])
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder, SEAL)
        assert write_segment(store, "state/s", {"x": given_text}, {"k": 1}) == store.size("state/s")
        raw = Path(folder, "state/s").read_bytes()
        assert raw.startswith(MARK)
        assert b"ARROW1" not in raw
        segment = read_segment(store, "state/s")
        assert segment.columns["x"].to_pylist() == given_text.to_pylist()
        assert dict(segment.about) == {"k": 1}
        if again:
            Path(folder, "state/s").write_bytes(b"")
        assert read_segment(Store(folder, SEAL), "state/s") is segment
        with pytest.raises(StateError):
            read_segment(Store(folder, Seal.new(bytes(32))), "state/s")
