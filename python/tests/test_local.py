"""The package counts what the program counts, whatever the data comes as."""

import gzip

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import roundtrip


def test_lines_are_counted_as_the_program_counts_them(log, program):
    assert roundtrip.connections(log).rows.to_pylist() == program


def test_a_packed_log_is_the_same_log(log, program, tmp_path):
    packed = tmp_path / "access.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert roundtrip.connections(packed).rows.to_pylist() == program


def test_pandas_arrow_and_parquet_in_any_order(table, program, tmp_path):
    shuffled = table.take(pa.array(reversed(range(len(table)))))
    path = tmp_path / "log.parquet"
    pa.parquet.write_table(shuffled, path, row_group_size=5_000)
    for data in [table, shuffled, shuffled.to_pandas(), table.to_reader(), path, str(path)]:
        assert roundtrip.connections(data).rows.to_pylist() == program, type(data)


def test_columns_may_have_any_name(table, program):
    renamed = table.rename_columns(["when", "who", "code", "n"])
    columns = {"time": "when", "client": "who", "status": "code", "size": "n"}
    assert roundtrip.connections(renamed, columns=columns).rows.to_pylist() == program
    with pytest.raises(ValueError, match="no column is known to be the time"):
        roundtrip.connections(renamed)


def test_what_cannot_be_counted_is_said(table):
    with pytest.raises(ValueError, match="65 connections per client"):
        roundtrip.connections(table, per_client=[65])
    with pytest.raises(ValueError, match="there is no time-out"):
        roundtrip.connections(table, timeouts=[])
    with pytest.raises(TypeError, match="neither a table nor a path"):
        roundtrip.connections(17)


def test_bad_lines_and_missing_sizes_are_counted():
    lines = pd.DataFrame({"value": [
        'h - - [01/Aug/1995:02:00:00 -0400] "GET / HTTP/1.0" 200 17',
        'h - - [01/Aug/1995:02:00:01 -0400] "GET / HTTP/1.0" 304 -',
        "dear diary",
    ]})
    answer = roundtrip.connections(lines)
    assert (answer.bad, answer.without_size) == (1, 1)
    assert answer.rows.to_pylist()[0]["requests"] == 1
    counted = roundtrip.connections(lines, missing_size="zero")
    assert counted.rows.to_pylist()[0]["requests"] == 2
