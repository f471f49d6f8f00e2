"""A sketch as a Spark data source: its leaves, or synthetic rows.

    spark.read.format("geoflux_sketch").option("path", "out").load()
    spark.read.format("geoflux_sketch").option("path", "out").option("rows", "10%").load()

``rows`` asks for synthetic rows, a number or a share; ``where`` is the condition of a query
(``u10_ms > 5 AND hour BETWEEN 14 AND 16``), ``seed`` makes synthetic rows the same again. Every
sketchlet is a partition, read as of the epoch that was committed when the plan was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from geoflux.engine.sketch_reader import OpenSketch

_KNOWN = {"path", "rows", "where", "seed"}


class SketchPartition(InputPartition):
    """A sketchlet by its number, the epoch, and how many rows of it are wanted."""

    def __init__(self, number: int, epoch: int | None, rows: str) -> None:
        super().__init__(number)
        self.epoch = epoch
        self.rows = rows


class SketchSource(DataSource):
    """The format ``geoflux_sketch``."""

    @classmethod
    def name(cls) -> str:
        """As users write it."""
        return "geoflux_sketch"

    def schema(self) -> StructType:
        """Those of the leaves, or of observations."""
        return from_arrow_schema(_answered(_opened(self.options), self.options, "0").schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads what the options say."""
        return _Reader(dict(self.options))


class _Reader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        sketch = _opened(self._options)
        wanted = self._options.get("rows", "")
        counts = [forest.observations for forest in sketch.forests]
        shares = _shared(wanted, counts) if wanted else [""] * len(counts)
        return [
            SketchPartition(number, sketch.epoch, rows)
            for number, rows in enumerate(shares)
            if rows != "0"
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from geoflux.engine.sketch_reader import open_sketch

        assert isinstance(partition, SketchPartition)
        one = open_sketch(self._options["path"], partition.epoch, partition.value)
        yield from _answered(one, self._options, partition.rows).to_batches()


def _opened(options: Mapping[str, str]) -> OpenSketch:
    from geoflux.engine.sketch_reader import open_sketch
    from geoflux.errors import ConfigError

    strange = sorted(set(options) - _KNOWN)
    if strange or "path" not in options:
        raise ConfigError(
            f"geoflux_sketch takes the options {', '.join(sorted(_KNOWN))}; path, the directory of "
            f"a run, is needed{', and ' + ', '.join(strange) + ' is unknown' if strange else ''}"
        )
    return open_sketch(options["path"])


def _answered(sketch: OpenSketch, options: Mapping[str, str], rows: str) -> Any:
    """The table of a query; ``rows`` 0 of the schema alone."""
    where = f" WHERE {options['where']}" if options.get("where") else ""
    asked = "leaves"
    if options.get("rows"):
        seed = f", {int(options['seed'])}" if options.get("seed") else ""
        asked = f"synthetic({'1' if rows == '0' else rows}{seed})"
    table = sketch.query(f"SELECT {asked}{where}").table
    assert table is not None, "leaves and rows are tables"
    table = table.cast(pa.schema([_spark_field(field) for field in table.schema]))
    return table.slice(0, 0) if rows == "0" else table


def _spark_field(field: pa.Field) -> pa.Field:
    """Spark's times have microseconds."""
    if not pa.types.is_timestamp(field.type):
        return field
    return pa.field(field.name, pa.timestamp("us", field.type.tz))


def _shared(wanted: str, counts: Sequence[int]) -> list[str]:
    """How many rows each sketchlet makes, as a query has it.

    >>> _shared("10", [300, 100, 0]), _shared("5%", [300, 100])
    (['8', '2', '0'], ["'5%'", "'5%'"])
    """
    if wanted.endswith("%"):
        return [f"'{wanted}'" if count else "0" for count in counts]
    total, left, out = sum(counts), int(wanted), []
    for count in counts:
        mine = round(left * count / total) if total else 0
        out.append(str(mine))
        total, left = total - count, left - mine
    return out
