"""The errors a user can meet.

One family, few kinds: a new kind exists only where a caller acts differently. Every message says
what was given, what was expected and what to do next. Each kind is also a builtin, so that code
that knows nothing of geoflux can still catch it.
"""

from __future__ import annotations

from collections.abc import Mapping


class GeofluxError(Exception):
    """Base of all errors that geoflux raises on purpose; the CLI prints it as one sentence."""


class ConfigError(GeofluxError, ValueError):
    """The settings are wrong. Nothing was started; mend the settings named and run again."""

    @classmethod
    def of(cls, problems: list[str]) -> ConfigError:
        """All problems at once, so that nobody mends them one run at a time."""
        if len(problems) == 1:
            return cls(problems[0])
        return cls(
            f"{len(problems)} settings are wrong:\n" + "\n".join(f"  - {p}" for p in problems)
        )


class RejectedRecord(GeofluxError, ValueError):
    """A record cannot be accepted; it is quarantined under ``code`` and the stream goes on."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


class SourceError(GeofluxError, OSError):
    """The source cannot be read (a folder is gone, a file was cut short). Restore it and rerun."""


class StateError(GeofluxError, RuntimeError):
    """The run's directory does not hold what it should. Use a new directory, or restore it."""


class OperatorError(GeofluxError, RuntimeError):
    """An operator of the user's own failed, or gave what it had not promised. Nothing of the epoch
    was committed; mend the operator and run again, it goes on there."""


class IntegrityError(GeofluxError, AssertionError):
    """An invariant was broken (a row lost or doubled). Nothing was committed; report this."""


class InfeasibleError(GeofluxError, ValueError):
    """No number of processors that is allowed does what was asked; nothing was changed. Give what
    ``missing`` names: processors by operator, or seconds under ``"seconds"``."""

    def __init__(self, message: str, missing: Mapping[str, float]) -> None:
        super().__init__(message)
        self.missing = dict(missing)


class UnstableLoop(InfeasibleError):
    """Tuples that go round ``loop`` become more and more, so that no number of processors keeps up.
    Mend the operator that derives too many."""

    def __init__(self, loop: tuple[str, ...], gain: float) -> None:
        round_trip = " -> ".join((*loop, loop[0]))
        super().__init__(
            f"the loop {round_trip} makes {gain:.3g} tuples out of one that goes round it; below 1 "
            "are needed, or they never end: let its operators derive fewer",
            {},
        )
        self.loop = loop
        self.gain = gain


class QueryError(GeofluxError, ValueError):
    """A query cannot be understood or answered; nothing was evaluated. ``sentence`` says what is
    wrong and what would be valid; ``line`` and ``column`` (from 1) where in the text, ``path``
    where in a JSON query. The message is the sentence, then the line with a caret under it."""

    def __init__(
        self,
        sentence: str,
        *,
        line: int | None = None,
        column: int | None = None,
        path: str | None = None,
        excerpt: str = "",
    ) -> None:
        where = f"\nat {path}" if path else ""
        if line is not None:
            where = f"\nline {line}, column {column}:\n{excerpt}"
        super().__init__(sentence + where)
        self.sentence = sentence
        self.line = line
        self.column = column
        self.path = path

    @property
    def placed(self) -> bool:
        """Whether it says where the mistake is."""
        return self.line is not None or self.path is not None


class EnvironmentProblem(GeofluxError, RuntimeError):
    """The machine lacks something (Java, memory, a package). The message says what to install."""
