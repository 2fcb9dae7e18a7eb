"""The answer: what was counted, and what could not be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable

import pyarrow as pa

from roundtrip import _kernel
from roundtrip.asked import Asked


@dataclass(frozen=True)
class Answer:
    """What was counted.

    `rows` are those of `roundtrip connections --format json`; `curve` has the most connections in each minute, with
    the time-out that is nearest to 15 s. `bad` rows or lines gave no request; requests `without_size` were left out.
    """

    rows: pa.RecordBatch
    curve: pa.RecordBatch
    bad: int
    without_size: int

    @classmethod
    def of(cls, asked: Asked, partials: Iterable[bytes], bad: int, without_size: int) -> Answer:
        """Adds up what was counted of stretches that follow one another in time."""
        question = asked.question()
        whole = _kernel.merge(question, list(partials))
        return cls(_kernel.rows(question, whole), _kernel.curve(question, whole), bad, without_size)
