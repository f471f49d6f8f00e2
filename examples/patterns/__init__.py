"""Maximal frequent patterns of the last so many sentences: generator, detector, reporter."""
