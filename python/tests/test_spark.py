"""On a cluster of two worker processes: the same numbers, also after a worker was killed."""

import os
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

import roundtrip.spark
from roundtrip import spark_rows
from roundtrip.engines import GridArguments


@pytest.fixture(scope="module")
def spark():
    # Workers are separate processes, and need the same packages.
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
    result = roundtrip.spark.connections(str(log), slice_s=600)
    assert result.rows.to_pylist() == program()
    assert (result.bad, result.without_size) == (0, 0)


def test_an_unsorted_table_gives_the_same_for_every_length_of_slices(spark, table, program, tmp_path):
    path = str(tmp_path / "log.parquet")
    pyarrow.parquet.write_table(table, path)
    shuffled = spark.read.parquet(path).repartition(5)
    local = roundtrip.connections(table)
    for slice_s in [1, 997.5, 86_400]:
        result = roundtrip.spark.connections(shuffled, slice_s=slice_s)
        assert result.rows.to_pylist() == program(), slice_s
        assert result.curve == local.curve, slice_s


def killer(marker):
    """A function for `mapInArrow` that changes nothing, and once kills the worker that runs it."""

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

    return kill_one


def test_a_worker_that_is_killed_changes_nothing(spark, log, program, tmp_path):
    marker = str(tmp_path / "killed")
    lines = spark.read.text(str(log)).repartition(4).mapInArrow(killer(marker), "value string")
    result = roundtrip.spark.connections(lines, slice_s=600)
    assert os.path.exists(marker)
    assert result.rows.to_pylist() == program()


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
    """Bursts with idle hours between them, and clients that continue from one slice to the next."""
    begin, hour = 1_700_000_000_000, 3_600_000
    rows = []
    for number, burst in enumerate([0, 1, 5, 30]):
        # Around the end of an hour, so that every longer timeout extends over it; one burst is much larger.
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
    """The package's counts without Spark; other tests compare them with the program."""
    known = {}

    def rows(**keywords):
        key = repr(keywords)
        if key not in known:
            known[key] = roundtrip.connections(bursts, columns={"time": "t"}, **keywords)
        return known[key]

    return rows


@pytest.mark.parametrize("kind", TIMES)
def test_times_of_every_type_give_the_same(spark, bursts, bursts_counted, kind):
    frame = spark.read.parquet(bursts).selectExpr(f"{TIMES[kind]} AS time", "client", "status", "size AS bytes")
    result = roundtrip.spark.connections(frame, slice_s=60)
    assert result == bursts_counted()
    assert result.without_size > 500


def test_a_timeout_may_be_longer_than_a_slice_and_a_slice_may_be_empty(spark, bursts, bursts_counted):
    frame = spark.read.parquet(bursts).repartition(3)
    for timeouts in [[1, 600, 7_200], [172_800], [0]]:
        for slice_s in [0.5, 120]:
            result = roundtrip.spark.connections(frame, columns={"time": "t"}, timeouts=timeouts, slice_s=slice_s)
            assert result == bursts_counted(timeouts=timeouts), (timeouts, slice_s)


def test_missing_sizes_are_null_or_nan_and_other_columns_are_not_read(spark, bursts, bursts_counted):
    frame = spark.read.parquet(bursts).selectExpr(
        "t", "status", "map('a', 1) AS `odd ``name`", "client", "coalesce(size, double('NaN')) AS size"
    )
    for missing_size in ["leave-out", "zero", "large"]:
        result = roundtrip.spark.connections(frame, columns={"time": "t"}, missing_size=missing_size)
        assert result == bursts_counted(missing_size=missing_size), missing_size


def test_a_w3c_log_is_read_by_its_fields_on_every_worker(spark, program, tmp_path):
    fields = "#Fields: date time c-ip sc-status sc-bytes"
    lines = [f"2026-11-21 08:{row // 60 % 60:02}:{row % 60:02} 192.0.2.{row % 9} 200 {row * 31 % 9_000}" for row in range(3_000)]
    path = tmp_path / "u_ex.log"
    path.write_text("\r\n".join([fields, *lines, fields, "dear diary", ""]))
    frame = spark.read.text(str(path), lineSep="\n").repartition(3)
    with pytest.raises(ValueError, match="unknown access log format|data before the line"):
        roundtrip.spark.connections(frame.filter("value LIKE 'dear%'"))
    result = roundtrip.spark.connections(str(path), slice_s=60)
    assert result.rows.to_pylist() == program(log=path)
    assert result.bad_lines == {"not of the log's format": 1}
    path.write_text("\r\n".join([fields, *lines, fields + " time-taken", ""]))
    with pytest.raises(ValueError, match="the log's `#Fields` lines differ .#Fields: .* time-taken.*; count its parts"):
        roundtrip.spark.connections(str(path))


def test_rejects_uncountable_input_with_a_remedy(spark, table, tmp_path):
    frame = spark.createDataFrame([(1, "h", 5)], "time long, client string, bytes long")
    with pytest.raises(ValueError, match="no column recognised as the client .columns: time, who, bytes.; name it"):
        roundtrip.spark.connections(frame.withColumnRenamed("client", "who"))
    with pytest.raises(ValueError, match="on Spark, leave rule and durations at their defaults"):
        roundtrip.spark.connections(frame, rule="first-created")
    with pytest.raises(ValueError, match="slice_s: 0 is not a duration"):
        roundtrip.spark.connections(frame, slice_s=0)
    with pytest.raises(TypeError, match="int is neither a data frame nor a path"):
        roundtrip.spark.connections(17)
    with pytest.raises(ValueError, match="the log has no requests"):
        roundtrip.spark.connections(frame.filter("false"))
    with pytest.raises(ValueError, match="[Cc]ast.* Struct") as refused:
        roundtrip.spark.connections(frame.selectExpr("time", "named_struct('a', 1) AS client", "bytes"))
    assert "Traceback" not in str(refused.value)


GRID = {"rtt": "20ms..80ms*2", "rate": "10Mbit", "loss": ["0%", "2%"], "protocol": ["http11", "http2"], "seed": range(5)}


def numbered(rows):
    return [{"row": number, **row} for number, row in enumerate(pa.table(rows).to_pylist(), 1)]


def in_order(frame):
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda row: row["row"])


def test_grids_have_the_same_rows_for_any_partitioning(spark):
    expected = numbered(roundtrip.simulate(**GRID))
    for rows_per_task in [None, 1, 7]:
        frame = roundtrip.spark.simulate(rows_per_task=rows_per_task, **GRID)
        assert in_order(frame) == expected, rows_per_task
    assert frame.rdd.getNumPartitions() == 6
    shuffled = spark_rows.rows_of(spark.range(len(expected)).repartition(3), GridArguments("simulate", GRID))
    assert in_order(shuffled) == expected


def test_other_engines_pages_and_stalls_are_the_same_on_workers(spark, tmp_path):
    page = tmp_path / "two.toml"
    page.write_text("[[object]]\nsize = 9000\n[[object]]\nsize = 20000\nafter = ['1 + 40ms']\n")
    pages = [page, roundtrip.page("6651+3883"), "small-page"]
    keywords = {"network": "4g", "loss": ["0%", "1%"], "protocol": "http11", "page": pages}
    for verb in ("predict", "compare"):
        rows = in_order(getattr(roundtrip.spark, verb)(**keywords))
        expected = numbered(getattr(roundtrip, verb)(**keywords))
        for row in [*rows, *expected]:
            # Whether notes name critical paths depends on the number of rows.
            row["notes"] = [note for note in row["notes"] if "critical path" not in note]
        assert rows == expected
    stalls = roundtrip.spark.simulate(stalls=True, rows_per_task=1, **GRID)
    local = pa.table(roundtrip.simulate(**GRID).stalls).to_pylist()
    assert [row.asDict() for row in stalls.collect()] == local and local


def test_a_killed_worker_loses_no_rows(spark, tmp_path):
    marker = str(tmp_path / "killed")
    expected = numbered(roundtrip.simulate(**GRID))
    numbers = spark.range(0, len(expected), 1, 4).mapInArrow(killer(marker), "id long")
    assert in_order(spark_rows.rows_of(numbers, GridArguments("simulate", GRID))) == expected
    assert os.path.exists(marker)


def test_a_directory_of_captures_is_diagnosed_as_each_file(spark, tmp_path):
    corpus = Path(__file__).resolve().parents[2] / "fuzz/corpus/capture"
    names = ["nagle", "loss"] if (corpus / "loss").exists() else ["nagle"]
    (tmp_path / "below").mkdir()
    for name in names:
        (tmp_path / "below" / name).write_bytes((corpus / name).read_bytes())
    (tmp_path / "text").write_text("no capture")
    rows = [row.asDict() for row in roundtrip.spark.diagnose(tmp_path).collect()]
    errors = [row for row in rows if row["error"]]
    assert len(errors) == 1 and errors[0]["capture"].endswith("/text") and errors[0]["cause"] is None
    for name in names:
        found = [row for row in rows if row["capture"].endswith(f"/below/{name}")]
        expected = [{**row, "error": None} for row in roundtrip.diagnose(tmp_path / "below" / name).findings.to_pylist()]
        assert found and [{**row, "capture": ""} for row in found] == [{**row, "capture": ""} for row in expected]
    with pytest.raises(ValueError, match="nagel"):
        roundtrip.spark.diagnose(tmp_path, causes=["nagel"])


def test_impossible_grids_are_refused_before_spark_runs(spark):
    with pytest.raises(ValueError, match="11000000 scenarios are too many"):
        roundtrip.spark.simulate(network="4g", protocol="http10", seed=range(1_000_000), parallel=range(1, 12))
    with pytest.raises(ValueError, match="unknown network `4h`"):
        roundtrip.spark.predict(network="4h")
    with pytest.raises(ValueError, match="rows_per_task: 0 is not a number of rows"):
        roundtrip.spark.simulate(rows_per_task=0)


def test_without_java_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RuntimeError, match="Spark needs Java; install Java 17"):
        roundtrip.spark.connections("access.log")
