"""What a run did, as values and in words, from what lies in its directory.

Displays, reports and the server tell the same story of a run: they all take it from here. Nothing
here draws, serves or changes a run.
"""
