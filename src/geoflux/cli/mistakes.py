"""Errors of the system that a person can do something about, as one sentence with what to do next.

Errors of geoflux are such sentences already. What is not known here is a defect and keeps its
stack trace.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from geoflux.errors import ConfigError

_NEXT: dict[int, str] = {
    errno.EACCES: "give yourself the right to it, or choose another path (--out for a run)",
    errno.EPERM: "give yourself the right to it, or choose another path (--out for a run)",
    errno.EROFS: "choose a path that can be written (--out for a run)",
    errno.ENOSPC: "free some space and give the same command again; a run goes on where it was",
    errno.EDQUOT: "free some space and give the same command again; a run goes on where it was",
    errno.ENOTDIR: "expected a directory there; choose another path (--out for a run)",
    errno.EISDIR: "expected a file there, not a directory; choose another path",
    errno.ENOENT: "there is no such file or directory; look whether the path is right",
    errno.EADDRINUSE: "end who listens there, or choose another port",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose another one",
    errno.EMFILE: "allow more open files (ulimit -n 65536) and give the same command again",
    errno.ENAMETOOLONG: "choose a shorter path",
}


def sentence_of(error: OSError) -> str | None:
    """What went wrong and what to do next; ``None`` where that is not known.

    >>> sentence_of(PermissionError(errno.EACCES, "Permission denied", "out/run.json"))[:40]
    'out/run.json: permission denied; give yo'
    >>> sentence_of(OSError("something else")) is None
    True
    """
    advice = _NEXT.get(error.errno or 0)
    if advice is None:
        return None
    where = f"{_path(error)}: " if error.filename else ""
    what = (error.strerror or str(error)).strip()
    return f"{where}{what[:1].lower()}{what[1:]}; {advice}"


def check_out(out: Path) -> None:
    """Refuse a directory that a run could not write to, before Spark is started for nothing."""
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ConfigError(f"--out {out}: {there} is a file, expected a directory; choose another")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(
            f"--out {out}: {there} cannot be written; choose another directory, or give yourself "
            "the right to it"
        )


def _path(error: OSError) -> str:
    name = error.filename
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
