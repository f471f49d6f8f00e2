"""What a stateful operator over keyed rows is: the three methods of Flux, and one that works.

A user writes these and gets partitioned parallelism that adapts: rows of one key always meet the
state of their partition, in the order in which they came; states are saved with every epoch, moved
between slots, spilled and brought back by the engine. The operator never knows who owns what.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

import pyarrow as pa

S = TypeVar("S")
ID, TIME = "@id", "@time"
"""Columns that the engine adds to what an operator asks for: the id of a row, and its time in
microseconds since 1970."""
ROW = "@row"
"""The int64 column of results that says which row of those given each comes from, counted from 0;
null: from none of them. The engine drops it."""
STREAM = "@stream"
"""The text column of results that says to which of several streams each row goes."""


class Operator(ABC, Generic[S]):
    """Processes rows of a partition against the partition's state ``S``.

    ``key`` is the column that rows are partitioned by (``@id``: by their ids), ``columns`` are the
    others that are read.
    Guarantee of the engine: for every key, ``process`` sees all rows exactly once and in order,
    whatever is moved, spilled, carried over or killed; how rows are cut into batches, and which
    keys share a state, is up to the engine and must not change the results.
    """

    key: str
    columns: tuple[str, ...] = ()
    needs_time: ClassVar[bool] = False
    """Whether rows without a readable time are refused."""
    stateless: ClassVar[bool] = False
    """Whether states are always empty; then nothing is saved."""
    streams: tuple[str, ...] = ("results",)
    """The streams that results go to. An operator with several has a text column ``@stream`` in
    its :attr:`output`, with the name of one of them in every row; readers do not see it."""

    @property
    @abstractmethod
    def output(self) -> pa.Schema:
        """The columns of the results."""

    @abstractmethod
    def empty(self) -> S:
        """The state of a partition that has seen nothing."""

    @abstractmethod
    def process(self, state: S, rows: pa.Table) -> tuple[S, pa.Table]:
        """Take rows in; returns the state from now on, and results.

        ``rows`` has the key and :attr:`columns` by their names, and ``@id`` and ``@time``. The
        state that was given may be changed or kept: the engine does not use it again. With a column
        ``@row`` in :attr:`output`, results say which row they come from; that is how the time is
        measured that an input takes through several operators.
        """

    @abstractmethod
    def extract(self, state: S) -> Mapping[str, Any]:
        """The whole state as named arrays (NumPy or Arrow), to be saved or moved."""

    @abstractmethod
    def install(self, arrays: Mapping[str, Any]) -> S:
        """The state that :meth:`extract` gave; arrays are Arrow's and must not be changed."""

    @abstractmethod
    def size(self, state: S) -> int:
        """The bytes of memory that the state takes."""
