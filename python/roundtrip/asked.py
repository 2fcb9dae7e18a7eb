"""What is asked: plain values, which other processes can make the kernel's question of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Sequence

from roundtrip._kernel import Question

TIMEOUTS_S = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 18, 20, 25, 30, 40, 50, 60)


@dataclass(frozen=True)
class Asked:
    """What `roundtrip connections` takes as flags, with the same defaults.

    `columns` names the columns of a table: `{"time": "ts", "client": "ip", "size": "n", "status": "code"}`; without
    it they are found by their usual names. `log_format` is that of lines of text.
    """

    timeouts: Sequence[float] = TIMEOUTS_S
    per_client: Sequence[int] = (1, 3)
    thresholds: Sequence[int] = (0, 1460, 4096)
    header_bytes: int | None = None
    missing_size: str = "leave-out"
    log_format: str = "clf"
    columns: Mapping[str, str] = field(default_factory=dict)

    def question(self) -> Question:
        """The kernel's question. Raises ValueError for what cannot be counted."""
        return Question(
            [round(timeout * 1000) for timeout in self.timeouts],
            list(self.per_client),
            list(self.thresholds),
            self.header_bytes,
            self.missing_size,
            self.log_format,
            list(self.columns.items()),
        )
