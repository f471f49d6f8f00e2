"""What was decrypted in this process, so that nobody decrypts the same segment in every epoch.

A mapped segment costs nothing to open again; an encrypted one does. So one that anybody still holds
is found here however large all of them are, and of those that nobody holds the ones used last are
kept, up to a limit.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar
from weakref import WeakValueDictionary


class Sized(Protocol):
    """Anything that knows its bytes."""

    @property
    def nbytes(self) -> int:
        """How many there are."""
        ...


T = TypeVar("T", bound=Sized)


class Decrypted(Generic[T]):
    """Things by key, at most ``most_bytes`` of them that nobody else holds.

    >>> import numpy as np
    >>> kept = Decrypted[np.ndarray](100)
    >>> first = kept.get("a", lambda: np.zeros(200, np.int8))
    >>> first is kept.get("a", lambda: np.zeros(1)), kept.nbytes
    (True, 0)
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._held: WeakValueDictionary[Hashable, T] = WeakValueDictionary()
        self._recent: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()
        self.nbytes = 0

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is known under a key, or else what ``make`` gives."""
        with self._lock:
            known = self._held.get(key)
            if known is not None:
                if key in self._recent:
                    self._recent.move_to_end(key)
                return known
        made = make()
        with self._lock:
            made = self._held.setdefault(key, made)
            if key not in self._recent:
                self._recent[key] = made
                self.nbytes += made.nbytes
            while self.nbytes > self._most:
                _, oldest = self._recent.popitem(last=False)
                self.nbytes -= oldest.nbytes
        return made
