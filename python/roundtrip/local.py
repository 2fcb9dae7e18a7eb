"""Counting here and now: pandas, Arrow, Parquet files and logs."""

from __future__ import annotations

import bz2
import gzip
import os
from pathlib import Path
from typing import Any, Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet

from roundtrip._kernel import Slice
from roundtrip.answer import Answer
from roundtrip.asked import Asked

LINES = 1 << 16


def connections(data: Any, asked: Asked | None = None, **flags: Any) -> Answer:
    """What keep-alive time-outs and DHTTP would cost and save.

    `data` is an Arrow table, batch or reader, anything with `__arrow_c_stream__` (pandas, Polars), or a path: of a
    Parquet file, or of a log, plain, gzip or bzip2. Rows need not be in order of time. `flags` are those of `Asked`.
    """
    asked = asked or Asked(**flags)
    question = asked.question()
    bad = without_size = 0
    read = []
    for batch in _batches(data):
        requests, some_bad, some_without_size = question.requests(batch)
        read.append(requests)
        bad += some_bad
        without_size += some_without_size
    counted = Slice(question, 0)
    if read:
        for batch in pa.Table.from_batches(read).sort_by("time_ms").to_batches():
            counted.push(batch)
    return Answer.of(asked, [counted.finish()], bad, without_size)


def _batches(data: Any) -> Iterable[pa.RecordBatch]:
    if isinstance(data, (str, os.PathLike)):
        return _of_file(Path(data))
    if isinstance(data, pa.RecordBatch):
        return [data]
    if isinstance(data, pa.Table):
        return data.to_batches()
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "iloc"):
        return pa.Table.from_pandas(data, preserve_index=False).to_batches()
    raise TypeError(f"{type(data).__name__} is neither a table nor a path")


def _of_file(path: Path) -> Iterator[pa.RecordBatch]:
    with open(path, "rb") as file:
        magic = file.read(4)
    if magic == b"PAR1":
        yield from pa.parquet.ParquetFile(path).iter_batches()
        return
    opened = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open}.get(magic[:2], open)
    with opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as lines:
        while some := [line for line, _ in zip(lines, range(LINES))]:
            yield pa.record_batch({"value": [line.rstrip("\n") for line in some]})
