"""What a stateful operator over keyed rows is: the three methods of Flux, and one that works.

A user writes these and gets partitioned parallelism that adapts: rows of one key always meet the
state of their partition, in the order in which they came; states are saved with every epoch, moved
between slots, spilled and brought back by the engine. The operator never knows who owns what.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
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
    """Empty: there is no such column, and :meth:`place` says by what rows are partitioned."""
    columns: tuple[str, ...] = ()
    needs_id: ClassVar[bool] = True
    """Whether rows without an id are refused; otherwise their position is their id."""
    needs_time: ClassVar[bool] = False
    """Whether rows without a readable time are refused."""
    stateless: ClassVar[bool] = False
    """Whether states are always empty; then nothing is saved."""
    streams: tuple[str, ...] = ("results",)
    """The streams that results go to. An operator with several has a text column ``@stream`` in
    its :attr:`output`, with the name of one of them in every row; readers do not see it."""
    refusals: ClassVar[Mapping[str, str]] = {}
    """Why :meth:`judged` refuses rows: short names, each with a sentence."""

    @property
    @abstractmethod
    def output(self) -> pa.Schema:
        """The columns of the results."""

    def place(self, rows: pa.Table) -> Any:
        """What rows are partitioned by, an array; the key, unless the operator says otherwise."""
        return rows.column(self.key)

    def judged(self, rows: pa.Table) -> npt.NDArray[np.uint8] | None:
        """Which rows are refused and go to quarantine: 0 for those that are welcome, otherwise the
        number of the refusal in :attr:`refusals`, counted from 1; ``None``: all are welcome."""
        return None

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


class Divisible(Operator[S]):
    """An operator whose states can be cut by prefixes of a place code, and joined again.

    Rows are partitioned by :meth:`place`: codes of ``code_bits`` bits, near places with alike first
    bits. A partition is a prefix (``code``, ``bits``: all codes that begin with these bits), split
    where there is much to do and merged where there is little. The engine relies on this:

    - the pieces that ``cut`` gives of a state, for prefixes that tile its partition, are the state
      again when they are ``joined``, in any order and grouping;
    - a row changes nothing of a state but the piece of its own code.
    """

    key: str = ""
    code_bits: int

    @abstractmethod
    def place(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """The code of each row, 0 to ``2 ** code_bits - 1``."""

    @abstractmethod
    def cut(self, state: S, code: int, bits: int) -> S:
        """The part of a state that lies in a prefix. The state that is given stays as it is, also
        when the part is changed later."""

    @abstractmethod
    def joined(self, states: Sequence[S]) -> S:
        """One state of several that have no code in common; those that are given may be used up."""

    def measured(
        self, state: S, bits: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        """The prefixes of so many bits that hold anything, and the bytes of each, for whoever
        decides what is given away; ``None``: bytes are taken to follow rows."""
        return None
