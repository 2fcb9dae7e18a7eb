"""Counting on Apache Spark: Spark schedules stretches of time, and sorts; the kernel counts.

Nothing depends on what was longer ago than the longest time-out. So requests are given to stretches of time, those of
the last longest time-out before a stretch once more, for a warm-up; every stretch is counted by itself, wherever Spark
has room, and the counts add up to the same whole numbers. A worker that dies takes only its stretches with it, and
Spark has them counted again.
"""

from __future__ import annotations

import os
import re
import shutil
from functools import partial
from typing import TYPE_CHECKING, Iterator, Sequence, cast

import pyarrow as pa
import pyarrow.compute as pc

try:
    from pyspark.errors import PythonException
    from pyspark.sql import DataFrame, SparkSession
except ImportError as error:
    raise ImportError("roundtrip.spark needs PySpark 3.5 or later: pip install 'roundtrip[spark]'") from error

from roundtrip._kernel import Lines, Question, Slice
from roundtrip.answer import REASONS, Answer, Tally
from roundtrip.asked import Asked
from roundtrip.local import LINES

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from roundtrip._kernel import Read
    from roundtrip.asked import Flags

SLICE_S = 3600
# Not a stretch: rows that say how much could not be read, and for which reason.
TALLY = -1
WITHOUT_SIZE = len(REASONS)
NOT_THERE = (
    "the Python of Spark's workers has no roundtrip; name one that has with PYSPARK_PYTHON, or send it with spark.archives"
)
# Lines that say what format a log is in.
BEGINNING = 512


def connections(
    data: DataFrame | str | Sequence[str],
    asked: Asked | None = None,
    *,
    slice_s: float = SLICE_S,
    **flags: Unpack[Flags],
) -> Answer:
    """What keep-alive time-outs and DHTTP would cost and save.

    `data` is a data frame: of requests, in any order, or with a single column `value`, of a log's lines. Or it is a
    path, or a list of them, that Spark can read: of Parquet, if it ends so, else of a log. `slice_s` is how long
    stretches are, in seconds, and never less than the longest time-out. `flags` are the fields of `Asked`; only the
    rule of the least recently used, without durations, can be cut into stretches.

    Raises ValueError for what cannot be counted, in a sentence that says what to do.

        >>> frame = spark.read.parquet("s3a://logs/2026/")
        >>> roundtrip.spark.connections(frame, columns={"client": "ip", "time": "ts"}, timeouts=[5, 15, 60])
    """
    asked = Asked.of(asked, flags)
    question = asked.question()
    if not question.one_pass:
        raise ValueError("under this rule a log cannot be cut; on Spark, leave rule and durations as they are")
    if not slice_s > 0:
        raise ValueError(f"slice_s: {slice_s!r} is no length of time; give seconds, such as {SLICE_S}")
    length_ms = max(round(slice_s * 1000), question.longest_ms, 1)
    frame, beginning = _frame(data), None
    if frame.columns == [LINES]:
        beginning = _beginning(question, asked, frame)
    else:
        # Said here, before anything runs, if there is none; and what is not needed is not read.
        names = question.columns(pa.schema([(name, pa.null()) for name in frame.columns]))
        frame = frame.select(*("`" + name.replace("`", "``") + "`" for name in names))
    requests = frame.mapInArrow(
        lambda batches: _given_to_slices(asked, length_ms, beginning, batches),
        "slice long, time_ms long, client long, bytes long",
    )
    in_order = requests.repartition("slice").sortWithinPartitions("slice", "time_ms")
    counted = in_order.mapInArrow(
        lambda batches: _counted(asked, length_ms, batches), "slice long, partial binary, reason long, count long"
    )
    return _answer(asked, counted)


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
        raise RuntimeError("Spark needs Java, and there is none; install Java 17, or say with JAVA_HOME where it is")
    return active or SparkSession.builder.getOrCreate()


def _beginning(question: Question, asked: Asked, frame: DataFrame) -> bytes:
    """Lines that say how the others are read. Raises ValueError if they are no log's."""
    lines = [row[0] for row in frame.head(BEGINNING)]
    beginning = "\n".join(line for line in lines if line).encode()
    Lines(question, asked.log_format, beginning)
    return beginning


def _given_to_slices(
    asked: Asked, length_ms: int, beginning: bytes | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    question, tally = asked.question(), Tally()
    read = question.rows if beginning is None else partial(_lines, Lines(question, asked.log_format, beginning), beginning)
    for batch in batches:
        requests, bad, without_size = read(batch)
        tally.add(bad, without_size)
        time_ms = requests.column("time_ms")
        own = pc.divide(time_ms, length_ms)
        yield _with_slice(requests, own)
        # What the next stretch warms up on.
        following = pc.add(own, 1)
        matters_from = pc.subtract(pc.multiply(following, length_ms), question.longest_ms)
        matters = pc.greater_equal(time_ms, matters_from)
        yield _with_slice(requests.filter(matters), following.filter(matters))
    counts = [*tally.bad, tally.without_size]
    nothing = [0] * len(counts)
    columns = {"slice": [TALLY] * len(counts), "time_ms": range(len(counts)), "client": counts, "bytes": nothing}
    yield pa.record_batch({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def _lines(lines: Lines, beginning: bytes, batch: pa.RecordBatch) -> Read:
    """W3C names its fields in a line, which a reader elsewhere does not see: they must be the same everywhere."""
    texts = batch.column(0)
    for line in texts.filter(pc.starts_with(texts, "#Fields:")).to_pylist():
        if line.rstrip("\r").encode() not in beginning:
            raise ValueError(f"not all of the log has the same fields ({line[:200]}); count its parts apart")
    return lines.column(batch)


def _with_slice(requests: pa.RecordBatch, slices: pa.Array) -> pa.RecordBatch:
    return pa.record_batch([slices, *requests.columns], names=["slice", *requests.schema.names])


def _counted(asked: Asked, length_ms: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    question = asked.question()
    number, counting = TALLY, None
    for batch in batches:
        for piece, rows in _by_slice(batch):
            if piece == TALLY:
                yield from map(_tallied, rows.column("time_ms").to_pylist(), rows.column("client").to_pylist())
                continue
            if counting is None or piece != number:
                if counting is not None:
                    yield _row(number, counting.finish())
                number, counting = piece, Slice(question, piece * length_ms)
            counting.push(rows)
    if counting is not None:
        yield _row(number, counting.finish())


def _by_slice(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batch's rows by stretch, of which they are in order."""
    lengths = pc.run_end_encode(batch.column("slice"))
    begin = 0
    for piece, end in zip(lengths.values.to_pylist(), lengths.run_ends.to_pylist()):
        yield piece, batch.slice(begin, end - begin)
        begin = end


def _tallied(reason: int, count: int) -> pa.RecordBatch:
    return _row(TALLY, b"", reason, count)


def _row(number: int, counted: bytes, reason: int = 0, count: int = 0) -> pa.RecordBatch:
    whole = {"reason": pa.array([reason], pa.int64()), "count": pa.array([count], pa.int64())}
    return pa.record_batch({"slice": pa.array([number], pa.int64()), "partial": pa.array([counted], pa.binary())} | whole)


def _answer(asked: Asked, counted: DataFrame) -> Answer:
    try:
        rows = counted.collect()
    except PythonException as error:
        if "No module named 'roundtrip'" in str(error):
            raise RuntimeError(NOT_THERE) from error
        # What a worker refuses, without the way it took to here.
        refused = re.search(r"^\s*(?:\w+\.)*ValueError: (.+)$", str(error), re.MULTILINE)
        if refused is None:
            raise
        raise ValueError(refused[1]) from error
    tally = Tally()
    for row in rows:
        if row["slice"] == TALLY and row["reason"] == WITHOUT_SIZE:
            tally.without_size += row["count"]
        elif row["slice"] == TALLY:
            tally.bad[row["reason"]] += row["count"]
    stretches = sorted((row for row in rows if row["slice"] != TALLY), key=lambda row: row["slice"])
    return Answer.of(asked, [bytes(row["partial"]) for row in stretches], tally)
