"""Encryption from outside: keys in files, what they are refused for, what is sealed in a store."""

from __future__ import annotations

import json
import os
import pickle
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from geoflux.cli.main import app
from geoflux.config import Config
from geoflux.errors import ConfigError, EnvironmentProblem, StateError
from geoflux.sections import SecurityConfig
from geoflux.state.decrypted import Decrypted
from geoflux.state.epoch_log import EpochLog
from geoflux.state.keys import new_key, read_key, store_for, store_of
from geoflux.state.seal import CHUNK, MARK, Seal
from geoflux.state.store import Store


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "run.key"
    new_key(path)
    return path


def begun(out: Path, key: Path) -> Store:
    """A directory as a run leaves it."""
    security = SecurityConfig(True, str(key))
    store = store_for(out, security)
    assert store.seal is not None
    config = {"security": {"encrypt": True, "key_file": str(key)}}
    store.write_json("run.json", {"config": config, "seal": store.seal.note()})
    EpochLog(store).commit(0, {"epoch": 0, "user": "anna"})
    return store


def test_a_new_key_is_its_owners_alone_and_never_written_over(key: Path) -> None:
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = read_key(key)
    assert len(before) == 32
    with pytest.raises(ConfigError, match="is there already"):
        new_key(key)
    assert read_key(key) == before
    with pytest.raises(ConfigError, match="cannot be written"):
        new_key(key / "below")


def test_what_is_no_key_is_refused(key: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_key(tmp_path / "nowhere")
    for text in (b"", b"abc", b"\xff\xfe", b"0" * 63, b"0" * 66, b"zz" * 32):
        key.write_bytes(text)
        with pytest.raises(ConfigError, match=r"64 hexadecimal digits.*geoflux key"):
            read_key(key)
    for mode in (0o640, 0o604, 0o644, 0o660):
        key.chmod(mode)
        with pytest.raises(ConfigError, match="chmod 600"):
            read_key(key)


def test_a_directory_is_opened_with_its_key_and_no_other(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    store = begun(out, key)
    assert store_for(out, SecurityConfig(True, str(key))) == store == store_of(out)
    assert EpochLog(store_of(out)).manifest(0)["user"] == "anna"
    other = tmp_path / "other.key"
    new_key(other)
    monkeypatch.setenv("GEOFLUX_SECURITY_KEY_FILE", str(other))
    for opened in (lambda: store_of(out), lambda: store_for(out, SecurityConfig(True, str(other)))):
        with pytest.raises(StateError, match="was encrypted with another key"):
            opened()
    key.rename(tmp_path / "moved.key")
    monkeypatch.setenv("GEOFLUX_SECURITY_KEY_FILE", str(tmp_path / "moved.key"))
    assert store_of(out) == store
    monkeypatch.delenv("GEOFLUX_SECURITY_KEY_FILE")
    with pytest.raises(ConfigError, match=r"run\.key.*cannot be read.*GEOFLUX_SECURITY_KEY_FILE"):
        store_of(out)


def test_two_runs_with_one_key_file_cannot_read_each_other(tmp_path: Path, key: Path) -> None:
    first, second = (begun(tmp_path / name, key) for name in ("a", "b"))
    assert first.seal != second.seal
    name = f"epochs/manifests/{0:012d}.json"
    os.replace(first.path(name), second.path(name))
    with pytest.raises(StateError, match="not as it was written"):
        EpochLog(second).manifest(0)


def test_a_key_in_the_runs_own_directory_is_refused(tmp_path: Path, key: Path) -> None:
    with pytest.raises(ConfigError, match="the run's own directory"):
        store_for(tmp_path, SecurityConfig(True, str(key)))


def test_only_what_the_run_keeps_for_itself_is_sealed(tmp_path: Path, key: Path) -> None:
    store = begun(tmp_path / "out", key)
    private = ("state/x.arrow", "epochs/intents/1.json", "plans/1.json")
    public = ("summary.json", "matches/x.parquet", "staging/x.parquet", "quarantine/x.parquet")
    for name in (*private, *public):
        store.write_bytes(name, b"secret")
        with store.output(name + "2") as stream:
            stream.write(b"secret")
        for file in (name, name + "2"):
            raw = Path(store.path(file)).read_bytes()
            assert raw.startswith(MARK) == (b"secret" not in raw) == (name in private)
            assert store.is_sealed(file) == (name in private)
            assert store.read_bytes(file) == store.open(file).read() == b"secret"


def test_neither_sealed_nor_plain_is_taken_for_the_other(tmp_path: Path, key: Path) -> None:
    sealed, plain = begun(tmp_path / "out", key), Store(str(tmp_path / "out"))
    for name, read in (("state/a", "open"), ("state/a", "read_bytes")):
        sealed.write_bytes(name, b"secret")
        with pytest.raises(StateError, match=r"is encrypted; name the file with its key"):
            getattr(plain, read)(name)
        plain.write_bytes(name, b"forged")
        with pytest.raises(StateError, match="is not encrypted, though its run is"):
            getattr(sealed, read)(name)
    with pytest.raises(StateError, match="is missing"):
        sealed.open("state/nowhere")


def test_a_file_that_broke_off_is_no_file(tmp_path: Path) -> None:
    store = Store(str(tmp_path), Seal.new(bytes(32)))

    def breaks_off() -> None:
        with store.output("state/a") as stream:
            stream.write(bytes(2 * CHUNK + 5))
            raise InterruptedError

    with pytest.raises(InterruptedError):
        breaks_off()
    assert store.size("state/a") > CHUNK
    with pytest.raises(StateError, match="cut short"):
        store.open("state/a")


def test_the_key_shows_nowhere(tmp_path: Path, key: Path) -> None:
    out = tmp_path / "out"
    store = begun(out, key)
    seal = store.seal
    assert seal is not None
    secrets = [seal.key, read_key(key)]
    texts = [repr(store), str(store), json.dumps(seal.note())]
    texts += [path.read_text(errors="replace") for path in out.rglob("*") if path.is_file()]
    for secret in secrets:
        for text in texts:
            assert secret.hex() not in text
            assert repr(secret)[2:-1] not in text
    assert pickle.loads(pickle.dumps(store)) == store, "workers get it"


def test_settings_say_what_encryption_lacks(monkeypatch: pytest.MonkeyPatch, key: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs security\.key_file; make one with geoflux key"):
        Config.from_dict({"security": {"encrypt": True}})
    given = {"security": {"encrypt": True, "key_file": str(key)}}
    assert Config.from_dict(given).security.encrypt
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'pip install "geoflux\[security\]"'):
        Config.from_dict(given)
    assert not Config.from_dict({}).security.encrypt


def test_a_machine_without_the_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    seal = Seal.new(bytes(32))
    sealed = seal.sealed("state/a", b"data")
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)
    for work in (
        lambda: Seal.new(bytes(32)),
        lambda: seal.sealed("state/a", b"data"),
        lambda: seal.unsealed("state/a", sealed, "there"),
    ):
        with pytest.raises(EnvironmentProblem, match="needs the package cryptography"):
            work()


def test_a_key_file_is_relative_to_the_settings_file(tmp_path: Path, key: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('[security]\nencrypt = true\nkey_file = "run.key"\n')
    assert read_key(Path(Config.load(path, environment={}).security.key_file)) == read_key(key)


def test_the_command_makes_a_key_and_does_not_show_it(tmp_path: Path) -> None:
    path = tmp_path / "new.key"
    told = CliRunner().invoke(app, ["key", str(path)])
    assert told.exit_code == 0
    assert path.read_text().strip() not in told.output
    assert "keep a copy" in " ".join(told.output.split())
    assert isinstance(CliRunner().invoke(app, ["key", str(path)]).exception, ConfigError)


def test_what_is_held_is_not_decrypted_again_and_the_rest_is_bounded() -> None:
    kept: Decrypted[np.ndarray] = Decrypted(1000)  # type: ignore[type-arg]
    made: list[str] = []

    def get(name: str, size: int) -> np.ndarray:  # type: ignore[type-arg]
        def make() -> np.ndarray:  # type: ignore[type-arg]
            made.append(name)
            return np.zeros(size, np.int8)

        return kept.get(name, make)

    held = get("large", 900)
    for k in range(20):
        get(f"small{k}", 300)
        assert kept.nbytes <= 1000
    assert get("large", 900) is held, "somebody has it: it is found, though no longer counted"
    made.clear()
    get("small19", 300)
    get("small18", 300)
    assert made == []
    get("small2", 300)
    assert made == ["small2"]
    del held
    get("large", 900)
    assert made == ["small2", "large"]
