"""Spark looks for data sources in packages of this kind of name: ``geoflux_sketch`` is found by its
name, nothing has to be registered."""

from geoflux.spark.sketch_source import SketchSource as DefaultSource

__all__ = ["DefaultSource"]
