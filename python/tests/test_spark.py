"""On a real cluster of two workers in processes of their own: the same numbers, also when a worker is killed."""

import os
import signal
import sys
from pathlib import Path

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
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
        .getOrCreate()
    )
    yield session
    session.stop()


def test_lines_are_counted_as_the_program_counts_them(spark, log, program):
    answer = roundtrip.spark.connections(str(log), slice_s=600)
    assert answer.rows.to_pylist() == program
    assert (answer.bad, answer.without_size) == (0, 0)


def test_a_table_in_no_order_gives_the_same_for_every_length_of_slices(spark, table, program, tmp_path):
    path = str(tmp_path / "log.parquet")
    pyarrow.parquet.write_table(table, path)
    shuffled = spark.read.parquet(path).repartition(5)
    local = roundtrip.connections(table)
    for slice_s in [1, 997.5, 86_400]:
        answer = roundtrip.spark.connections(shuffled, slice_s=slice_s)
        assert answer.rows.to_pylist() == program, slice_s
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
    assert answer.rows.to_pylist() == program
