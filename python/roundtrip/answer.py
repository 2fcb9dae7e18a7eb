"""The answer: what was counted, and what could not be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterable, Mapping

import pyarrow as pa

from roundtrip import _kernel
from roundtrip.asked import Asked

REASONS: tuple[str, ...] = tuple(_kernel.reasons())


@dataclass
class Tally:
    """What gave no request: rows or lines by the place of their reason, and answers without a size."""

    bad: list[int] = field(default_factory=lambda: [0] * len(REASONS))
    without_size: int = 0

    def add(self, bad: Iterable[int], without_size: int) -> None:
        """Adds those of a stretch of log."""
        self.bad = [one + other for one, other in zip(self.bad, bad)]
        self.without_size += without_size


@dataclass(frozen=True)
class Answer:
    """What was counted.

    rows: those of `roundtrip connections --format json`: one for each limit, time-out and threshold.
    curve: the most connections in each minute, with the time-out that is nearest to 15 s.
    bad_lines: how many rows or lines gave no request, by reason.
    without_size: how many requests were left out because their size is not known.
    """

    rows: pa.RecordBatch
    curve: pa.RecordBatch
    bad_lines: Mapping[str, int]
    without_size: int

    @property
    def bad(self) -> int:
        """Rows or lines that gave no request, whatever the reason."""
        return sum(self.bad_lines.values())

    @classmethod
    def of(cls, asked: Asked, partials: Iterable[bytes], tally: Tally) -> Answer:
        """Adds up what was counted of stretches that follow one another in time.

        Raises ValueError if that is nothing.
        """
        question = asked.question()
        whole = _kernel.merge(question, list(partials))
        bad_lines = {reason: count for reason, count in zip(REASONS, tally.bad) if count > 0}
        answer = cls(_kernel.rows(question, whole), _kernel.curve(question, whole), bad_lines, tally.without_size)
        if answer.rows.column("requests")[0].as_py() == 0:
            raise ValueError(answer._nothing())
        return answer

    def _nothing(self) -> str:
        if self.without_size > 0:
            return 'no response has a size; missing_size="zero" counts them as empty, "large" as above every threshold'
        if self.bad > 0:
            reasons = "; ".join(f"{count} {reason}" for reason, count in self.bad_lines.items())
            return f"none of it could be read: {reasons}"
        return "no requests in it; name another log"
