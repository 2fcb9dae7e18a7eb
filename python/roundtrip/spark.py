"""Counting on Apache Spark: Spark schedules stretches of time, and sorts; the kernel counts.

Nothing depends on what was longer ago than the longest time-out. So requests are given to stretches of time, those of
the last longest time-out before a stretch once more, for a warm-up; every stretch is counted by itself, wherever Spark
has room, and the counts add up to the same whole numbers. A worker that dies takes only its stretches with it, and
Spark has them counted again.
"""

from __future__ import annotations

from typing import Any, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from roundtrip._kernel import Slice
from roundtrip.answer import Answer
from roundtrip.asked import Asked

SLICE_S = 3600
# Not a stretch: rows that say what could not be read.
TALLY = -1


def connections(
    data: DataFrame | str, asked: Asked | None = None, *, slice_s: float = SLICE_S, **flags: Any
) -> Answer:
    """What keep-alive time-outs and DHTTP would cost and save.

    `data` is a data frame, of rows or, with a single column `value`, of lines; or a path that Spark can read: of
    Parquet, if its name ends so, else of a log. `slice_s` is how long stretches are, at least the longest time-out.
    `flags` are those of `Asked`.
    """
    asked = asked or Asked(**flags)
    length_ms = max(round(slice_s * 1000), asked.question().longest_ms, 1)
    frame = _frame(data)
    requests = frame.mapInArrow(
        lambda batches: _given_to_slices(asked, length_ms, batches),
        "slice long, time_ms long, client long, bytes long",
    )
    in_order = requests.repartition("slice").sortWithinPartitions("slice", "time_ms")
    counted = in_order.mapInArrow(
        lambda batches: _counted(asked, length_ms, batches), "slice long, partial binary, bad long, without_size long"
    ).collect()
    counted.sort(key=lambda row: row["slice"])
    partials = [bytes(row["partial"]) for row in counted if row["slice"] != TALLY]
    bad = sum(row["bad"] for row in counted)
    return Answer.of(asked, partials, bad, sum(row["without_size"] for row in counted))


def _frame(data: DataFrame | str) -> DataFrame:
    if not isinstance(data, str):
        return data
    spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    return spark.read.parquet(data) if data.rstrip("/").endswith(".parquet") else spark.read.text(data)


def _given_to_slices(
    asked: Asked, length_ms: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    question = asked.question()
    bad = without_size = 0
    for batch in batches:
        requests, some_bad, some_without_size = question.requests(batch)
        bad += some_bad
        without_size += some_without_size
        time_ms = requests.column("time_ms")
        own = pc.divide(time_ms, length_ms)
        yield _with_slice(requests, own)
        # What the next stretch warms up on.
        following = pc.add(own, 1)
        matters_from = pc.subtract(pc.multiply(following, length_ms), question.longest_ms)
        matters = pc.greater_equal(time_ms, matters_from)
        yield _with_slice(requests.filter(matters), following.filter(matters))
    tally = pa.record_batch({"slice": [TALLY], "time_ms": [0], "client": [bad], "bytes": [without_size]})
    yield tally


def _with_slice(requests: pa.RecordBatch, slices: pa.Array) -> pa.RecordBatch:
    return pa.record_batch([slices, *requests.columns], names=["slice", *requests.schema.names])


def _counted(asked: Asked, length_ms: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    question = asked.question()
    number, counting = None, None
    for batch in batches:
        for piece, rows in _by_slice(batch):
            if piece == TALLY:
                bad, without_size = pc.sum(rows.column("client")), pc.sum(rows.column("bytes"))
                yield _partial(TALLY, b"", bad.as_py(), without_size.as_py())
                continue
            if piece != number:
                if counting is not None:
                    yield _partial(number, counting.finish(), 0, 0)
                number, counting = piece, Slice(question, piece * length_ms)
            counting.push(rows)
    if counting is not None:
        yield _partial(number, counting.finish(), 0, 0)


def _by_slice(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batch's rows by stretch, of which they are in order."""
    lengths = pc.run_end_encode(batch.column("slice"))
    begin = 0
    for piece, end in zip(lengths.values.to_pylist(), lengths.run_ends.to_pylist()):
        yield piece, batch.slice(begin, end - begin)
        begin = end


def _partial(number: int, partial: bytes, bad: int, without_size: int) -> pa.RecordBatch:
    columns = {
        "slice": pa.array([number], pa.int64()),
        "partial": pa.array([partial], pa.binary()),
        "bad": pa.array([bad], pa.int64()),
        "without_size": pa.array([without_size], pa.int64()),
    }
    return pa.record_batch(columns)
