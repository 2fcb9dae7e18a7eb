"""Counting in this process: pandas, Polars, Arrow; files of tables and of logs."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from roundtrip import files
from roundtrip._kernel import KernelQuery, Lines, Slice
from roundtrip.query import Query
from roundtrip.result import Result, Tally

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from roundtrip._kernel import Read
    from roundtrip.query import Flags

# Name of the column of text lines, as in Spark.
LINES = "value"


def connections(data: Any, query: Query | None = None, **flags: Unpack[Flags]) -> Result:
    """Computes the costs and savings of keep-alive timeouts and DHTTP.

    `data` is an Arrow table, batch or reader, or anything with `__arrow_c_stream__` (pandas, Polars): of requests, or
    with a single column `value`, of a log's lines. Or it is a path, or a list of paths: a log, plain, gzip, zstd or
    bzip2, a Parquet or Arrow file, a directory or a pattern. Requests may be in any order. `flags` are the fields of
    `Query`.

    Raises ValueError for input that cannot be counted, with the remedy.

        >>> result = roundtrip.connections("access.log.gz", timeouts=[1, 5, 15, 60], per_client=6)
        >>> result.rows.to_pandas()[["timeout_s", "max_simultaneous", "total_connections"]]
    """
    query = Query.of(query, flags)
    kernel = query.kernel()
    tally, read = Tally(), []
    for requests, bad, without_size in _read(kernel, query, data):
        read.append(requests)
        tally.add(bad, without_size)
    counted = Slice(kernel, 0)
    for batch in _in_order(read):
        counted.push(batch)
    return Result.of(query, [counted.finish()], tally)


def _in_order(read: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if not read:
        return []
    table = pa.Table.from_batches(read)
    times = table.column("time_ms")
    later = pc.all(pc.less_equal(times.slice(0, max(len(times) - 1, 0)), times.slice(1)))
    return (table if later.as_py() is not False else table.sort_by("time_ms")).to_batches()


def _read(kernel: KernelQuery, query: Query, data: Any) -> Iterator[Read]:
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    if isinstance(data, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in data):
        yield from _of_files(kernel, query, [file for path in data for file in files.find(path)])
        return
    batches = iter(_batches(data))
    for batch in batches:
        if batch.schema.names == [LINES]:
            yield from _of_column(kernel, query, batch, batches)
        else:
            yield kernel.rows(batch)


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
    kernel: KernelQuery, query: Query, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]
) -> Iterator[Read]:
    beginning = "\n".join(line for line in first.column(0).slice(0, 512).to_pylist() if line)
    lines = Lines(kernel, query.log_format, beginning.encode())
    yield lines.column(first)
    yield from map(lines.column, rest)


def _of_files(kernel: KernelQuery, query: Query, paths: list[Path]) -> Iterator[Read]:
    for path in paths:
        try:
            yield from _of_file(kernel, query, path)
        except ValueError as error:
            if len(paths) == 1:
                raise ValueError(f"{path}: {error}") from None
            warnings.warn(f"{path}: {error}; it is skipped", stacklevel=2)


def _of_file(kernel: KernelQuery, query: Query, path: Path) -> Iterator[Read]:
    if table := files.table(path):
        yield from map(kernel.rows, table.batches(kernel.columns(table.schema)))
        return
    lines = None
    for block in files.blocks(path):
        lines = lines or Lines(kernel, query.log_format, block[: files.BEGINNING])
        yield lines.block(block)
