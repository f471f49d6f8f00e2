"""Standing location queries over endless spatial streams, on Apache Spark, exactly once."""

__version__ = "0.1.0"
