"""Benchmarks: named commands that measure geoflux beside its baselines, in one run, as ratios."""
