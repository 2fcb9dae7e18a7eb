"""Result of counting: rows, connections over time, and the number of unreadable lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterable, Mapping

import pyarrow as pa

from roundtrip import _kernel
from roundtrip.query import Query

REASONS: tuple[str, ...] = tuple(_kernel.reasons())


@dataclass
class Tally:
    """Rows or lines without a request, by the index of their reason, and responses without a size."""

    bad: list[int] = field(default_factory=lambda: [0] * len(REASONS))
    without_size: int = 0

    def add(self, bad: Iterable[int], without_size: int) -> None:
        """Adds the numbers of a part of a log."""
        self.bad = [one + other for one, other in zip(self.bad, bad)]
        self.without_size += without_size


@dataclass(frozen=True)
class Result:
    """Counted connections.

    rows: those of `roundtrip connections --format json`: one for each limit, timeout and threshold.
    curve: maximum number of connections in each minute, with the timeout nearest to 15 s.
    bad_lines: number of rows or lines without a request, by reason.
    without_size: number of requests that are left out because their size is unknown.
    """

    rows: pa.RecordBatch
    curve: pa.RecordBatch
    bad_lines: Mapping[str, int]
    without_size: int

    @property
    def bad(self) -> int:
        """Number of rows or lines without a request, for all reasons."""
        return sum(self.bad_lines.values())

    @classmethod
    def of(cls, query: Query, partials: Iterable[bytes], tally: Tally) -> Result:
        """Merges the counts of consecutive slices of time.

        Raises ValueError if they contain no request.
        """
        kernel = query.kernel()
        whole = _kernel.merge(kernel, list(partials))
        bad_lines = {reason: count for reason, count in zip(REASONS, tally.bad) if count > 0}
        result = cls(_kernel.rows(kernel, whole), _kernel.curve(kernel, whole), bad_lines, tally.without_size)
        if result.rows.column("requests")[0].as_py() == 0:
            raise ValueError(result._reason_for_nothing())
        return result

    def _reason_for_nothing(self) -> str:
        if self.without_size > 0:
            return 'no response has a size; missing_size="zero" counts them as empty, "large" as above every threshold'
        if self.bad > 0:
            reasons = "; ".join(f"{count} {reason}" for reason, count in self.bad_lines.items())
            return f"no line could be read: {reasons}"
        return "the log has no requests; name another log"
