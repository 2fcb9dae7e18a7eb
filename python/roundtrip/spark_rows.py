"""Grids of scenarios and directories of captures on Apache Spark: each task has a slice of the rows, or some of the files.

A row depends on its own keys alone, its seed among them. So any partitioning gives the same rows, also after a worker died.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Iterable, Iterator, Sequence, Union

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from roundtrip.diagnosis import diagnose
from roundtrip.engines import GridArguments, Scenario

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from roundtrip._kernel import KernelGrid

# Rows of a task: seconds of work, and few tasks.
ROWS_PER_TASK = 256
MAX_TASKS = 4_096


def grid(spark: SparkSession, verb: str, scenario: Scenario, rows_per_task: int | None, stalls: bool) -> DataFrame:
    """A data frame of a grid's rows, or of their stalls."""
    arguments = GridArguments(verb, scenario)
    count = len(arguments.kernel())
    if rows_per_task is None:
        rows_per_task = max(ROWS_PER_TASK, -(-count // MAX_TASKS))
    if rows_per_task < 1:
        raise ValueError(f"rows_per_task: {rows_per_task!r} is not a number of rows; give 1 or more")
    return rows_of(spark.range(0, count, 1, -(-count // rows_per_task)), arguments, stalls)


def rows_of(numbers: DataFrame, arguments: GridArguments, stalls: bool = False) -> DataFrame:
    """The rows of these numbers, from 0, in the column `id`."""
    schema = _table(arguments.kernel(), 0, 0, stalls).schema
    return numbers.mapInArrow(partial(_compute, arguments, stalls), from_arrow_schema(schema))


def _compute(arguments: GridArguments, stalls: bool, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    kernel = arguments.kernel()
    for batch in batches:
        # Consecutive numbers differ from their positions by the same.
        numbers = enumerate(batch.column("id").to_pylist())
        for _, run in groupby(numbers, key=lambda pair: pair[1] - pair[0]):
            first, *rest = [number for _, number in run]
            yield from _table(kernel, first, 1 + len(rest), stalls).to_batches()


def _table(kernel: KernelGrid, first: int, count: int, stalls: bool) -> pa.Table:
    rows = kernel.slice(first, count)
    table = pa.table(rows.stalls() if stalls else rows.rows())
    if not stalls:
        table = table.add_column(0, "row", pa.array(range(first + 1, first + 1 + len(table)), pa.int64()))
    return table.cast(pa.schema([field.with_type(_signed(field.type)) for field in table.schema]))


def _signed(kind: pa.DataType) -> pa.DataType:
    """The type that Spark has, which lacks unsigned ones."""
    return pa.int64() if pa.types.is_unsigned_integer(kind) else kind


def findings(
    spark: SparkSession, captures: Union[str, os.PathLike[str], Sequence[Union[str, os.PathLike[str]]]], causes: Iterable[str]
) -> DataFrame:
    """A data frame of the findings of captures."""
    paths = [captures] if isinstance(captures, (str, os.PathLike)) else list(captures)
    causes = list(causes)
    # Unknown causes are refused before anything runs.
    schema = _findings([], causes).schema
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load([str(path) for path in paths])
    return files.select("path", "content").mapInArrow(partial(_diagnose, causes), from_arrow_schema(schema))


def _diagnose(causes: list[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = _findings([], causes).schema
    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content").to_pylist()):
            try:
                found = _findings([content], causes)
            except (ValueError, OSError) as error:
                found = pa.Table.from_pylist([{"error": str(error)}], schema)
            capture = pa.array([path] * len(found), pa.string())
            yield from found.set_column(schema.get_field_index("capture"), "capture", capture).to_batches()


def _findings(captures: list[bytes], causes: list[str]) -> pa.Table:
    """Findings, with the column of errors."""
    table = diagnose(captures, causes=causes).findings
    return table.append_column("error", pa.nulls(len(table), pa.string()))
