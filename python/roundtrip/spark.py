"""Counting, experiments and diagnosis on Apache Spark: Spark schedules slices, and sorts; the kernel counts and computes.

Open connections depend only on requests within the longest timeout. So each slice of time also receives the requests of
one longest timeout before it, as a warm-up. Slices are counted independently, and their counts add up to the same whole
numbers. If a worker dies, Spark counts its slices again. Rows of grids are computed likewise, by the number of the row.
"""

from __future__ import annotations

import os
import re
import shutil
from functools import partial
from typing import TYPE_CHECKING, Iterable, Iterator, Sequence, cast

import pyarrow as pa
import pyarrow.compute as pc

try:
    from pyspark.errors import PythonException
    from pyspark.sql import DataFrame, SparkSession
except ImportError as error:
    raise ImportError("roundtrip.spark needs PySpark 3.5 or later: pip install 'roundtrip[spark]'") from error

from roundtrip import spark_rows
from roundtrip._kernel import KernelQuery, Lines, Slice
from roundtrip.local import LINES
from roundtrip.query import Query
from roundtrip.result import REASONS, Result, Tally

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from roundtrip._kernel import Read
    from roundtrip.engines import Scenario
    from roundtrip.query import Flags

SLICE_S = 3600
# Slice number of rows with the number of unreadable lines, by reason.
TALLY = -1
WITHOUT_SIZE = len(REASONS)
NOT_INSTALLED = (
    "the Python of Spark's workers lacks roundtrip; set PYSPARK_PYTHON to one that has it, or send one with spark.archives"
)
# Number of lines from which the format of a log is detected.
BEGINNING = 512


def connections(
    data: DataFrame | str | Sequence[str],
    query: Query | None = None,
    *,
    slice_s: float = SLICE_S,
    **flags: Unpack[Flags],
) -> Result:
    """Computes the costs and savings of keep-alive timeouts and DHTTP.

    `data` is a data frame: of requests, in any order, or with a single column `value`, of a log's lines. Or it is a
    path, or a list of paths, that Spark can read: of Parquet, if it ends in `.parquet`, else of a log. `slice_s` is the
    length of a slice of time, in seconds; it is at least the longest timeout. `flags` are the fields of `Query`. A log
    can be divided only under the rule `least-recently-used`, without durations.

    Raises ValueError for input that cannot be counted, with the remedy.

        >>> frame = spark.read.parquet("s3a://logs/2026/")
        >>> roundtrip.spark.connections(frame, columns={"client": "ip", "time": "ts"}, timeouts=[5, 15, 60])
    """
    query = Query.of(query, flags)
    kernel = query.kernel()
    if not kernel.one_pass:
        raise ValueError("a log cannot be divided under this rule; on Spark, leave rule and durations at their defaults")
    if not slice_s > 0:
        raise ValueError(f"slice_s: {slice_s!r} is not a duration; give seconds, such as {SLICE_S}")
    length_ms = max(round(slice_s * 1000), kernel.longest_ms, 1)
    frame, beginning = _frame(data), None
    if frame.columns == [LINES]:
        beginning = _beginning(kernel, query, frame)
    else:
        # A missing column is reported before anything runs; other columns are not read.
        names = kernel.columns(pa.schema([(name, pa.null()) for name in frame.columns]))
        frame = frame.select(*("`" + name.replace("`", "``") + "`" for name in names))
    requests = frame.mapInArrow(
        lambda batches: _assign_to_slices(query, length_ms, beginning, batches),
        "slice long, time_ms long, client long, bytes long",
    )
    in_order = requests.repartition("slice").sortWithinPartitions("slice", "time_ms")
    counted = in_order.mapInArrow(
        lambda batches: _count_slices(query, length_ms, batches), "slice long, partial binary, reason long, count long"
    )
    return _result(query, counted)


def predict(*, rows_per_task: int | None = None, **scenario: Unpack[Scenario]) -> DataFrame:
    """Page load times by the closed formulas, as `roundtrip.predict`; see `simulate`."""
    return spark_rows.grid(_session(), "predict", scenario, rows_per_task, False)


def simulate(*, rows_per_task: int | None = None, stalls: bool = False, **scenario: Unpack[Scenario]) -> DataFrame:
    """Page load times by packets in virtual time, as `roundtrip.simulate`: a data frame of the same rows.

    The first column is `row`, from 1. A task computes `rows_per_task` consecutive rows, by default 256, or more above a
    million rows; any number gives the same rows. With `stalls` the data frame has the table of stalls instead. Notes have
    no critical paths. Unsigned numbers are long here, as Spark lacks them: seeds are below 2^63.

    Raises ValueError with the command line's sentence. Nothing is computed before an action of the data frame.

        >>> rows = roundtrip.spark.simulate(rtt="10ms..200ms*50", rate="20Mbit", loss=["0%", "1%"], seed=range(10_000))
        >>> rows.groupBy("rtt_ms", "loss_percent").avg("elapsed_ms").show()
    """
    return spark_rows.grid(_session(), "simulate", scenario, rows_per_task, stalls)


def compare(*, rows_per_task: int | None = None, **scenario: Unpack[Scenario]) -> DataFrame:
    """The formulas and the simulator on the same scenarios, as `roundtrip.compare`; see `simulate`."""
    return spark_rows.grid(_session(), "compare", scenario, rows_per_task, False)


def diagnose(captures: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, causes: Iterable[str] = ()) -> DataFrame:
    """Findings in captures, as `roundtrip.diagnose(...).findings`: a data frame with a row for each.

    `captures`: a path that Spark can read, of a file, a directory with all below it, or a pattern; or a list of paths. Each
    file is a part of a task, and must fit into a worker's memory. A file that is not a capture has one row, with the reason in the
    column `error`.

        >>> roundtrip.spark.diagnose("s3a://captures/2026/").groupBy("cause").sum("saving_ms").show()
    """
    return spark_rows.findings(_session(), captures, causes)


def _frame(data: DataFrame | str | Sequence[str]) -> DataFrame:
    if hasattr(data, "mapInArrow"):
        return cast(DataFrame, data)
    paths = [data] if isinstance(data, (str, os.PathLike)) else data
    if not isinstance(paths, (list, tuple)) or not all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise TypeError(f"{type(data).__name__} is neither a data frame nor a path")
    spark, paths = _session(), [str(path) for path in paths]
    if all(path.rstrip("/").endswith(".parquet") for path in paths):
        return spark.read.parquet(*paths)
    return spark.read.text(paths, lineSep="\n")


def _session() -> SparkSession:
    active = SparkSession.getActiveSession()
    if active is None and not os.environ.keys() & {"JAVA_HOME", "SPARK_REMOTE"} and shutil.which("java") is None:
        raise RuntimeError("Spark needs Java; install Java 17, or set JAVA_HOME")
    return active or SparkSession.builder.getOrCreate()


def _beginning(kernel: KernelQuery, query: Query, frame: DataFrame) -> bytes:
    """Returns the lines that identify the format. Raises ValueError if they are not of a log."""
    lines = [row[0] for row in frame.head(BEGINNING)]
    beginning = "\n".join(line for line in lines if line).encode()
    Lines(kernel, query.log_format, beginning)
    return beginning


def _assign_to_slices(
    query: Query, length_ms: int, beginning: bytes | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    kernel, tally = query.kernel(), Tally()
    read = kernel.rows if beginning is None else partial(_lines, Lines(kernel, query.log_format, beginning), beginning)
    for batch in batches:
        requests, bad, without_size = read(batch)
        tally.add(bad, without_size)
        time_ms = requests.column("time_ms")
        slices_of_rows = pc.divide(time_ms, length_ms)
        yield _with_slice(requests, slices_of_rows)
        # Warm-up of the next slice.
        following = pc.add(slices_of_rows, 1)
        warm_up_from_ms = pc.subtract(pc.multiply(following, length_ms), kernel.longest_ms)
        is_warm_up = pc.greater_equal(time_ms, warm_up_from_ms)
        yield _with_slice(requests.filter(is_warm_up), following.filter(is_warm_up))
    counts = [*tally.bad, tally.without_size]
    nothing = [0] * len(counts)
    columns = {"slice": [TALLY] * len(counts), "time_ms": range(len(counts)), "client": counts, "bytes": nothing}
    yield pa.record_batch({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def _lines(lines: Lines, beginning: bytes, batch: pa.RecordBatch) -> Read:
    """Reads lines. W3C's `#Fields` lines must be equal everywhere, because other workers do not see them."""
    texts = batch.column(0)
    for line in texts.filter(pc.starts_with(texts, "#Fields:")).to_pylist():
        if line.rstrip("\r").encode() not in beginning:
            raise ValueError(f"the log's `#Fields` lines differ ({line[:200]}); count its parts separately")
    return lines.column(batch)


def _with_slice(requests: pa.RecordBatch, slices: pa.Array) -> pa.RecordBatch:
    return pa.record_batch([slices, *requests.columns], names=["slice", *requests.schema.names])


def _count_slices(query: Query, length_ms: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    kernel = query.kernel()
    number, counting = TALLY, None
    for batch in batches:
        for slice_number, rows in _by_slice(batch):
            if slice_number == TALLY:
                yield from map(_tally_row, rows.column("time_ms").to_pylist(), rows.column("client").to_pylist())
                continue
            if counting is None or slice_number != number:
                if counting is not None:
                    yield _row(number, counting.finish())
                number, counting = slice_number, Slice(kernel, slice_number * length_ms)
            counting.push(rows)
    if counting is not None:
        yield _row(number, counting.finish())


def _by_slice(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Splits a batch that is sorted by slice."""
    lengths = pc.run_end_encode(batch.column("slice"))
    begin = 0
    for slice_number, end in zip(lengths.values.to_pylist(), lengths.run_ends.to_pylist()):
        yield slice_number, batch.slice(begin, end - begin)
        begin = end


def _tally_row(reason: int, count: int) -> pa.RecordBatch:
    return _row(TALLY, b"", reason, count)


def _row(number: int, counted: bytes, reason: int = 0, count: int = 0) -> pa.RecordBatch:
    whole = {"reason": pa.array([reason], pa.int64()), "count": pa.array([count], pa.int64())}
    return pa.record_batch({"slice": pa.array([number], pa.int64()), "partial": pa.array([counted], pa.binary())} | whole)


def _result(query: Query, counted: DataFrame) -> Result:
    try:
        rows = counted.collect()
    except PythonException as error:
        if "No module named 'roundtrip'" in str(error):
            raise RuntimeError(NOT_INSTALLED) from error
        # The worker's error, without the stack trace.
        value_error = re.search(r"^\s*(?:\w+\.)*ValueError: (.+)$", str(error), re.MULTILINE)
        if value_error is None:
            raise
        raise ValueError(value_error[1]) from error
    tally = Tally()
    for row in rows:
        if row["slice"] == TALLY and row["reason"] == WITHOUT_SIZE:
            tally.without_size += row["count"]
        elif row["slice"] == TALLY:
            tally.bad[row["reason"]] += row["count"]
    slices = sorted((row for row in rows if row["slice"] != TALLY), key=lambda row: row["slice"])
    return Result.of(query, [bytes(row["partial"]) for row in slices], tally)
