"""The sketch: what was observed, in columns; its densities, sets and queries."""
