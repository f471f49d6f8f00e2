"""The general lane over files: Spark's own file source, for comparison and for odd formats."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType

from geoflux.config import Config

CORRUPT = "_corrupt_record"
"""Where Spark puts a line of JSON that it cannot read."""


def file_stream(spark: SparkSession, config: Config, schema: pa.Schema) -> DataFrame:
    """A streaming DataFrame of the events in the configured folder."""
    spark_schema = from_arrow_schema(schema)
    reader = spark.readStream.option("recursiveFileLookup", "true")
    if _is_parquet(config):
        return reader.schema(spark_schema).parquet(config.source.path)
    with_corrupt = spark_schema.add(CORRUPT, StringType())
    return (
        reader.schema(with_corrupt)
        .option("columnNameOfCorruptRecord", CORRUPT)
        .json(config.source.path)
    )


def _is_parquet(config: Config) -> bool:
    if config.source.format != "auto":
        return config.source.format == "parquet"
    path = Path(config.source.path)
    names = [path] if path.is_file() else path.rglob("*")
    return any(name.suffix == ".parquet" for name in names)
