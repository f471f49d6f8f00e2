"""Events that come in batches, put where the run looks for files, on disk before it is said so.

Lines of NDJSON are appended to one file that grows. A batch with a key of the client's own becomes
a file named by that key, and so does a batch of Arrow: sent again, it is found to be there, and no
event is doubled; another batch with the same key is refused. Rows that the run cannot use are
quarantined by it, as from any other file.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from geoflux.engine.intake import POSITION_ID, EventColumns
from geoflux.serve.arrow_bodies import Claims, check_types, claims
from geoflux.serve.journal import Journal, sync_folder, write_durably
from geoflux.serve.problems import Problem
from geoflux.serve.served_run import NAME, ServedRun

NDJSON = ("application/x-ndjson", "application/jsonl", "application/json-lines")
ARROW = "application/vnd.apache.arrow.stream"
_MOST_ROWS = 5_000_000
_MOST_BYTES = 256 << 20
_DIGEST = b"geoflux.batch"


@dataclass(frozen=True)
class Taken:
    """How many events are on disk; ``again``: they were there before."""

    accepted: int
    again: bool


@dataclass
class EventInbox:
    """The folder of a run's events that the server writes to."""

    run: ServedRun
    _journal: Journal | None = None

    async def take(self, body: bytes, media: str, key: str | None, user: str) -> Taken:
        """A batch; all of it is on disk afterwards, or nothing."""
        folder = self.run.event_inbox()
        if media in NDJSON:
            self._check_format("ndjson")
            data, count = await asyncio.to_thread(self._lines, body)
            if key is None:
                await self._grown(folder).append(data)
                return Taken(count, False)
            name = f"{_named(user, key)}.ndjson"
        elif media == ARROW:
            self._check_format("parquet")
            data, count = await asyncio.to_thread(self._columns, body)
            name = f"{_named(user, key or uuid.uuid4().hex)}.parquet"
        else:
            raise Problem(
                415, f"events come as {NDJSON[0]} or {ARROW}; say which in Content-Type", "media"
            )
        return Taken(count, await asyncio.to_thread(_put, folder / name, data))

    def _check_format(self, wanted: str) -> None:
        reads = self.run.config.source.format
        if reads not in ("auto", wanted):
            raise Problem(
                409, f"this run reads only {reads} files, and these events would be {wanted}; run "
                'it with source.format = "auto", or send the other kind', "no_events",
            )  # fmt: skip

    def _grown(self, folder: Path) -> Journal:
        if self._journal is None or self._journal.path.parent != folder:
            path = folder / f"{NAME}.ndjson"
            end = path.stat().st_size if path.exists() else 0
            self._journal = Journal(path, lambda *_: None, end)
        return self._journal

    def _lines(self, body: bytes) -> tuple[bytes, int]:
        """The lines of a batch that are not blank, each checked to be an object of its own."""
        longest = self.run.config.source.max_record_bytes
        lines = [line for line in body.split(b"\n") if line.strip()]
        for place, line in enumerate(lines, start=1):
            if len(line) > longest:
                raise Problem(
                    422, f"line {place} has {len(line):,} bytes; expected at most {longest:,}",
                    "oversized_record",
                )  # fmt: skip
            try:
                good = isinstance(json.loads(line), dict)
            except (ValueError, RecursionError):
                good = False
            if not good:
                raise Problem(
                    422, f"line {place} is no JSON object; expected one event per line",
                    "malformed_json",
                )  # fmt: skip
        if not lines:
            raise _empty()
        return b"".join(line.rstrip(b"\r") + b"\n" for line in lines), len(lines)

    def _columns(self, body: bytes) -> tuple[bytes, int]:
        """A stream of Arrow as Parquet."""
        try:
            _check_claims(claims(body))
            with pa.ipc.open_stream(body) as reader:
                check_types(reader.schema)
                table = reader.read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise Problem(
                422, f"the body is no Arrow IPC stream: {_first_line(error)}", "malformed_arrow"
            ) from None
        if len(table) == 0:
            raise _empty()
        names = table.schema.names
        columns = EventColumns.of(self.run.config.source, self.run.config.space)
        wanted = {columns.x, columns.y, columns.time, columns.id} - {POSITION_ID}
        if missing := sorted(wanted - set(names)):
            raise Problem(422, f"the events have no column {', '.join(missing)}", "missing_column")
        if len(set(names)) < len(names):
            raise Problem(422, "two columns have the same name", "malformed_arrow")
        out = io.BytesIO()
        noted = {**(table.schema.metadata or {}), _DIGEST: hashlib.sha256(body).hexdigest()}
        try:
            pq.write_table(table.replace_schema_metadata(noted), out)
        except (pa.ArrowException, ValueError) as error:
            detail = f"the columns cannot be kept as Parquet: {_first_line(error)}"
            raise Problem(422, detail, "malformed_arrow") from None
        return out.getvalue(), len(table)


def _empty() -> Problem:
    return Problem(422, "the batch holds no event; expected at least one", "no_events")


def _named(user: str, key: str) -> str:
    return f"{NAME}-{hashlib.sha256(f'{user}/{key}'.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _put(path: Path, data: bytes) -> bool:
    """Write a file unless it is there; whether it was. Refused where it holds something else."""
    others = [path.with_suffix(suffix) for suffix in (".ndjson", ".parquet")]
    differs = any(other.exists() for other in others if other != path)
    if not differs and write_durably(path, data):
        return False
    if differs or _content(path.read_bytes()) != _content(data):
        raise Problem(
            409, "another batch was sent with this Idempotency-Key; use a new key for each batch",
            "duplicate_key",
        )  # fmt: skip
    sync_folder(path.parent)  # whoever wrote it may have died before
    return True


def _content(data: bytes) -> bytes:
    """What tells whether two files hold the same batch: all of it, or what came as Arrow."""
    if not data.startswith(b"PAR1"):
        return data
    metadata = pq.read_schema(io.BytesIO(data)).metadata or {}
    return bytes(metadata.get(_DIGEST, b""))


def _check_claims(claimed: Claims) -> None:
    if claimed.rows > _MOST_ROWS or claimed.nbytes > _MOST_BYTES:
        raise Problem(
            413, f"the batch unfolds to {claimed.rows:,} events of {claimed.nbytes:,} bytes; "
            f"expected at most {_MOST_ROWS:,} and {_MOST_BYTES:,}, send it in parts", "body",
        )  # fmt: skip


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
