"""Where a run's key is kept: in a file of the user's, outside of everything that the run writes.

``run.json`` notes the path of that file and a check value, never the key. :func:`store_for` is the
store of a run that is started, :func:`store_of` that of a directory which somebody looks into.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from geoflux.errors import ConfigError
from geoflux.sections import SecurityConfig
from geoflux.state.seal import KEY_BYTES, Seal
from geoflux.state.store import Store

RUN = "run.json"
TOPOLOGY = "topology.json"
VARIABLE = "GEOFLUX_SECURITY_KEY_FILE"


def store_for(out: str | Path, security: SecurityConfig) -> Store:
    """The store of a run with these settings, new or to be gone on with."""
    plain = Store(str(out))
    if not security.encrypt:
        return plain
    path = Path(security.key_file)
    if plain.is_local and path.resolve().is_relative_to(Path(str(out)).resolve()):
        raise ConfigError(
            f"security.key_file = {security.key_file!r} lies in the run's own directory; whoever "
            "takes that would have the key as well: keep it elsewhere"
        )
    master = read_key(path)
    if not plain.exists(RUN):
        return Store(plain.root, Seal.new(master))
    note = plain.read_json(RUN).get("seal")
    return Store(plain.root, Seal.noted(master, note, plain.root)) if note else plain


def store_of(out: str | Path) -> Store:
    """The store of a directory, with its key where its run is encrypted. The key is looked for
    where the environment says (``GEOFLUX_SECURITY_KEY_FILE``), else where it was for the run."""
    plain = Store(str(out))
    noted = plain.read_json(RUN) if plain.exists(RUN) else {}
    if "seal" not in noted:
        return plain
    path = os.environ.get(VARIABLE) or noted["config"]["security"]["key_file"]
    return Store(plain.root, Seal.noted(read_key(Path(path)), noted["seal"], plain.root))


def new_key(path: Path) -> None:
    """Write a new key to a new file that only its owner can read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ConfigError(
            f"{path} is there already, and may be the only key to what was encrypted with it; "
            "choose another name"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(KEY_BYTES) + "\n")


def read_key(path: Path) -> bytes:
    """The key in a file; :class:`ConfigError` where it holds none, or others can read it."""
    try:
        mode, text = path.stat().st_mode, path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"security.key_file = {str(path)!r} cannot be read: {error.strerror}; name the file "
            f"with the run's key there or in {VARIABLE}"
        ) from None
    if mode & 0o077:
        raise ConfigError(f"security.key_file = {str(path)!r} can be read by others; chmod 600 it")
    key = b""
    with contextlib.suppress(ValueError):
        key = bytes.fromhex(text.decode("ascii").strip())
    if len(key) != KEY_BYTES:
        raise ConfigError(
            f"security.key_file = {str(path)!r} holds no key, which is {2 * KEY_BYTES} hexadecimal "
            "digits; make one with geoflux key PATH"
        )
    return key
