"""Counting here and now: pandas, Polars, Arrow; files of tables and of logs."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from roundtrip import files
from roundtrip._kernel import Lines, Question, Slice
from roundtrip.answer import Answer, Tally
from roundtrip.asked import Asked

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from roundtrip._kernel import Read
    from roundtrip.asked import Flags

# The column that lines of text are in, as Spark calls it.
LINES = "value"


def connections(data: Any, asked: Asked | None = None, **flags: Unpack[Flags]) -> Answer:
    """What keep-alive time-outs and DHTTP would cost and save.

    `data` is an Arrow table, batch or reader, or anything with `__arrow_c_stream__` (pandas, Polars): of requests, or
    with a single column `value`, of a log's lines. Or it is a path, or a list of them: a log, plain, gzip, zstd or
    bzip2, a Parquet or Arrow file, a folder or a pattern. Nothing needs to be in order of time. `flags` are the
    fields of `Asked`.

    Raises ValueError for what cannot be counted, in a sentence that says what to do.

        >>> answer = roundtrip.connections("access.log.gz", timeouts=[1, 5, 15, 60], per_client=6)
        >>> answer.rows.to_pandas()[["timeout_s", "max_simultaneous", "total_connections"]]
    """
    asked = Asked.of(asked, flags)
    question = asked.question()
    tally, read = Tally(), []
    for requests, bad, without_size in _read(question, asked, data):
        read.append(requests)
        tally.add(bad, without_size)
    counted = Slice(question, 0)
    for batch in _in_order(read):
        counted.push(batch)
    return Answer.of(asked, [counted.finish()], tally)


def _in_order(read: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if not read:
        return []
    table = pa.Table.from_batches(read)
    times = table.column("time_ms")
    later = pc.all(pc.less_equal(times.slice(0, max(len(times) - 1, 0)), times.slice(1)))
    return (table if later.as_py() is not False else table.sort_by("time_ms")).to_batches()


def _read(question: Question, asked: Asked, data: Any) -> Iterator[Read]:
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    if isinstance(data, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in data):
        yield from _of_files(question, asked, [file for path in data for file in files.named(path)])
        return
    batches = iter(_batches(data))
    for batch in batches:
        if batch.schema.names == [LINES]:
            yield from _of_column(question, asked, batch, batches)
        else:
            yield question.rows(batch)


def _batches(data: Any) -> Iterable[pa.RecordBatch]:
    if isinstance(data, pa.RecordBatch):
        return [data]
    if isinstance(data, pa.Table):
        return data.to_batches()
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "iloc"):
        return pa.Table.from_pandas(data).to_batches()
    raise TypeError(f"{type(data).__name__} is neither a table nor a path")


def _of_column(
    question: Question, asked: Asked, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]
) -> Iterator[Read]:
    beginning = "\n".join(line for line in first.column(0).slice(0, 512).to_pylist() if line)
    lines = Lines(question, asked.log_format, beginning.encode())
    yield lines.column(first)
    yield from map(lines.column, rest)


def _of_files(question: Question, asked: Asked, paths: list[Path]) -> Iterator[Read]:
    for path in paths:
        try:
            yield from _of_file(question, asked, path)
        except ValueError as error:
            if len(paths) == 1:
                raise ValueError(f"{path}: {error}") from None
            warnings.warn(f"{path}: {error}; it is passed over", stacklevel=2)


def _of_file(question: Question, asked: Asked, path: Path) -> Iterator[Read]:
    if table := files.table(path):
        yield from map(question.rows, table.batches(question.columns(table.schema)))
        return
    lines = None
    for block in files.blocks(path):
        lines = lines or Lines(question, asked.log_format, block[: files.BEGINNING])
        yield lines.block(block)
