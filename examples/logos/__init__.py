"""Logos in the pictures of several cameras: extractor, matcher, aggregator."""
