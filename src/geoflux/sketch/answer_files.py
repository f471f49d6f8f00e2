"""Answers as files: Parquet, Arrow, or JSON, by the ending of the name."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from geoflux.errors import ConfigError
from geoflux.sketch.answers import Answer

ENDINGS = (".parquet", ".arrow", ".json")


def write_answer(answer: Answer, path: Path) -> list[Path]:
    """Write an answer to a file, and the edges of a graph to one beside it (``-edges``); the files
    are returned."""
    if path.suffix not in ENDINGS:
        raise ConfigError(f"--out {path}: expected a name that ends in {' or '.join(ENDINGS)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".json":
            path.write_text(json.dumps(answer.to_dict()) + "\n", encoding="utf-8")
            return [path]
        _write(answer.to_table(), path)
        if answer.edges is None:
            return [path]
        beside = path.with_stem(f"{path.stem}-edges")
        _write(answer.edges, beside)
    except OSError as error:
        raise ConfigError(f"--out {path} cannot be written: {error.strerror or error}") from error
    return [path, beside]


def _write(table: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        feather.write_feather(table, str(path), compression="uncompressed")
