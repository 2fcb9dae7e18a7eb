"""On a real cluster of two workers in processes of their own: the same numbers, also when a worker is killed."""

import os
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

import roundtrip.spark


@pytest.fixture(scope="module")
def spark():
    # Workers are processes of their own, and need the same packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
        .getOrCreate()
    )
    yield session
    session.stop()


def test_lines_are_counted_as_the_program_counts_them(spark, log, program):
    answer = roundtrip.spark.connections(str(log), slice_s=600)
    assert answer.rows.to_pylist() == program()
    assert (answer.bad, answer.without_size) == (0, 0)


def test_a_table_in_no_order_gives_the_same_for_every_length_of_slices(spark, table, program, tmp_path):
    path = str(tmp_path / "log.parquet")
    pyarrow.parquet.write_table(table, path)
    shuffled = spark.read.parquet(path).repartition(5)
    local = roundtrip.connections(table)
    for slice_s in [1, 997.5, 86_400]:
        answer = roundtrip.spark.connections(shuffled, slice_s=slice_s)
        assert answer.rows.to_pylist() == program(), slice_s
        assert answer.curve == local.curve, slice_s


def test_a_worker_that_is_killed_changes_nothing(spark, log, program, tmp_path):
    marker = str(tmp_path / "killed")

    def kill_one(batches):
        for batch in batches:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                # This process's parent forks Python's workers; the parent of that is the worker of the cluster.
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
                os.kill(int(daemon.rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
            yield batch

    lines = spark.read.text(str(log)).repartition(4).mapInArrow(kill_one, "value string")
    answer = roundtrip.spark.connections(lines, slice_s=600)
    assert os.path.exists(marker)
    assert answer.rows.to_pylist() == program()


TIMES = {
    "timestamp": "timestamp_micros(t * 1000)",
    "timestamp_ntz": "CAST(to_utc_timestamp(timestamp_micros(t * 1000), 'America/New_York') AS timestamp_ntz)",
    "milliseconds": "t",
    "microseconds": "t * 1000",
    "double": "t / 1000.0D",
    "text": "concat(date_format(to_utc_timestamp(timestamp_micros(t * 1000), 'America/New_York'),"
    " \"yyyy-MM-dd'T'HH:mm:ss.SSS\"), 'Z')",
}


@pytest.fixture(scope="module")
def bursts(tmp_path_factory):
    """Bursts with hours of nothing between them, and clients that go on from one stretch to the next."""
    begin, hour = 1_700_000_000_000, 3_600_000
    rows = []
    for number, burst in enumerate([0, 1, 5, 30]):
        # Around the end of an hour, so that every longer time-out reaches over it; many more in one than in the others.
        middle = (begin // hour + burst) * hour
        for row in range(6_000 if number == 2 else 500):
            at = middle - 120_000 + row * 7_919 % 240_000
            size = None if row % 11 == 3 else row * 37 % 9_000
            rows.append((at, f"192.0.2.{row % 23}", 304 if size is None else 200, size))
    times, clients, statuses, sizes = zip(*rows)
    columns = {"t": times, "client": clients, "status": statuses, "size": pa.array(sizes, pa.int64())}
    path = str(tmp_path_factory.mktemp("bursts") / "bursts.parquet")
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


@pytest.fixture(scope="module")
def bursts_counted(bursts):
    """What the package counts here, without Spark; other tests hold that to the program."""
    known = {}

    def rows(**asked):
        key = repr(asked)
        if key not in known:
            known[key] = roundtrip.connections(bursts, columns={"time": "t"}, **asked)
        return known[key]

    return rows


@pytest.mark.parametrize("kind", TIMES)
def test_times_of_every_type_give_the_same(spark, bursts, bursts_counted, kind):
    frame = spark.read.parquet(bursts).selectExpr(f"{TIMES[kind]} AS time", "client", "status", "size AS bytes")
    answer = roundtrip.spark.connections(frame, slice_s=60)
    assert answer == bursts_counted()
    assert answer.without_size > 500


def test_a_time_out_may_be_longer_than_a_slice_and_a_slice_may_be_empty(spark, bursts, bursts_counted):
    frame = spark.read.parquet(bursts).repartition(3)
    for timeouts in [[1, 600, 7_200], [172_800], [0]]:
        for slice_s in [0.5, 120]:
            answer = roundtrip.spark.connections(frame, columns={"time": "t"}, timeouts=timeouts, slice_s=slice_s)
            assert answer == bursts_counted(timeouts=timeouts), (timeouts, slice_s)


def test_missing_sizes_are_null_or_nan_and_columns_that_are_not_asked_for_are_not_read(spark, bursts, bursts_counted):
    frame = spark.read.parquet(bursts).selectExpr(
        "t", "status", "map('a', 1) AS `odd ``name`", "client", "coalesce(size, double('NaN')) AS size"
    )
    for missing_size in ["leave-out", "zero", "large"]:
        answer = roundtrip.spark.connections(frame, columns={"time": "t"}, missing_size=missing_size)
        assert answer == bursts_counted(missing_size=missing_size), missing_size


def test_a_log_of_w3c_is_read_by_its_fields_on_every_worker(spark, program, tmp_path):
    fields = "#Fields: date time c-ip sc-status sc-bytes"
    lines = [f"2026-11-21 08:{row // 60 % 60:02}:{row % 60:02} 192.0.2.{row % 9} 200 {row * 31 % 9_000}" for row in range(3_000)]
    path = tmp_path / "u_ex.log"
    path.write_text("\r\n".join([fields, *lines, fields, "dear diary", ""]))
    frame = spark.read.text(str(path), lineSep="\n").repartition(3)
    with pytest.raises(ValueError, match="not an access log that is known here|data before the line"):
        roundtrip.spark.connections(frame.filter("value LIKE 'dear%'"))
    answer = roundtrip.spark.connections(str(path), slice_s=60)
    assert answer.rows.to_pylist() == program(log=path)
    assert answer.bad_lines == {"not of the log's format": 1}
    path.write_text("\r\n".join([fields, *lines, fields + " time-taken", ""]))
    with pytest.raises(ValueError, match="not all of the log has the same fields .#Fields: .* time-taken.*; count its parts"):
        roundtrip.spark.connections(str(path))


def test_what_cannot_be_counted_is_said(spark, table, tmp_path):
    frame = spark.createDataFrame([(1, "h", 5)], "time long, client string, bytes long")
    with pytest.raises(ValueError, match="no column is known to be the client .there are time, who, bytes.; name it"):
        roundtrip.spark.connections(frame.withColumnRenamed("client", "who"))
    with pytest.raises(ValueError, match="on Spark, leave rule and durations as they are"):
        roundtrip.spark.connections(frame, rule="first-created")
    with pytest.raises(ValueError, match="slice_s: 0 is no length of time"):
        roundtrip.spark.connections(frame, slice_s=0)
    with pytest.raises(TypeError, match="int is neither a data frame nor a path"):
        roundtrip.spark.connections(17)
    with pytest.raises(ValueError, match="no requests in it"):
        roundtrip.spark.connections(frame.filter("false"))
    with pytest.raises(ValueError, match="[Cc]ast.* Struct") as refused:
        roundtrip.spark.connections(frame.selectExpr("time", "named_struct('a', 1) AS client", "bytes"))
    assert "Traceback" not in str(refused.value)


def test_without_java_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RuntimeError, match="Spark needs Java, and there is none; install Java 17"):
        roundtrip.spark.connections("access.log")
