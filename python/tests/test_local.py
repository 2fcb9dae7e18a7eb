"""The package counts as the program does, for every form of data."""

import bz2
import gzip
import pickle
from datetime import timedelta

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import roundtrip

CLF = 'h - - [01/Aug/1995:02:00:0{} -0400] "GET / HTTP/1.0" {} {}'


def test_lines_are_counted_as_the_program_counts_them(log, program):
    result = roundtrip.connections(log)
    assert result.rows.to_pylist() == program()
    assert (result.bad, result.bad_lines, result.without_size) == (0, {}, 0)


def test_a_compressed_log_is_the_same_log(log, program, tmp_path):
    plain = log.read_bytes()
    cut = plain.index(b"\n", len(plain) // 2) + 1
    packed = {
        "members.gz": gzip.compress(plain[:cut]) + gzip.compress(plain[cut:]),
        "log.bz2": bz2.compress(plain),
        "log.zst": pa.compress(plain, codec="zstd", asbytes=True),
    }
    for name, contents in packed.items():
        path = tmp_path / name
        path.write_bytes(contents)
        assert roundtrip.connections(path).rows.to_pylist() == program(), name


def test_a_truncated_compressed_log_is_read_up_to_its_end(log, tmp_path):
    path = tmp_path / "cut.log.gz"
    whole = gzip.compress(log.read_bytes())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.warns(UserWarning, match="could not be read to its end"):
        result = roundtrip.connections(path)
    assert 0 < result.rows.column("requests")[0].as_py() < 60_000


def test_parts_of_a_log_in_a_directory_are_one_log(log, program, tmp_path):
    lines = log.read_bytes().splitlines(keepends=True)
    for number, name in enumerate(["2.log", "1.log", "below/3.log"]):
        path = tmp_path / "logs" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(b"".join(lines[number * 20_000 : (number + 1) * 20_000]))
    (tmp_path / "logs" / "notes.txt").write_text("dear diary")
    with pytest.warns(UserWarning, match="notes.txt: unknown access log format.*; it is skipped"):
        assert roundtrip.connections(tmp_path / "logs").rows.to_pylist() == program()
    paths = [str(tmp_path / "logs" / "[12].log"), tmp_path / "logs" / "below"]
    assert roundtrip.connections(paths).rows.to_pylist() == program()


def test_pandas_arrow_and_files_in_any_order(table, program, tmp_path):
    shuffled = table.take(pa.array(reversed(range(len(table)))))
    parquet, arrow, stream = (tmp_path / name for name in ["log.parquet", "log.arrow", "log.stream"])
    pa.parquet.write_table(shuffled, parquet, row_group_size=5_000)
    for path, kind in [(arrow, pa.ipc.new_file), (stream, pa.ipc.new_stream)]:
        with kind(path, shuffled.schema) as writer:
            writer.write_table(shuffled, 7_000)
    for data in [table, shuffled, shuffled.to_pandas(), table.to_reader(), parquet, str(parquet), arrow, stream]:
        assert roundtrip.connections(data).rows.to_pylist() == program(), type(data)


def test_columns_may_have_any_name(table, program):
    renamed = table.rename_columns(["when", "who", "code", "n"])
    columns = {"time": "when", "client": "who", "status": "code", "size": "n"}
    assert roundtrip.connections(renamed, columns=columns).rows.to_pylist() == program()
    del columns["client"]
    assert roundtrip.connections(renamed, columns=columns, client_field="who").rows.to_pylist() == program()
    with pytest.raises(ValueError, match="no column recognised as the time .columns: when, who, code, n.; name it"):
        roundtrip.connections(renamed)
    with pytest.raises(ValueError, match="unknown column `wen`; choose one of when, who, code, n"):
        roundtrip.connections(renamed, columns={"time": "wen"})


FLAGS = [
    (["--timeout", "0,0.5,90", "--per-client", "2,7"], {"timeouts": [0, 0.5, timedelta(seconds=90)], "per_client": [2, 7]}),
    (["--threshold", "0,900", "--header-bytes", "100"], {"thresholds": [0, 900], "header_bytes": 100}),
    (["--missing-size", "large", "--timeout", "15"], {"missing_size": "large", "timeouts": 15}),
    (["--client-prefix", "16", "--log-format", "clf"], {"client_prefix": 16, "log_format": "clf"}),
    (["--rule", "first-created", "--timeout", "5,15"], {"rule": "first-created", "timeouts": [5, 15]}),
    (["--rule", "idle-first", "--per-client", "2", "--timeout", "15"], {"rule": "idle-first", "per_client": 2, "timeouts": 15}),
]


@pytest.mark.parametrize("flags, keywords", FLAGS, ids=[" ".join(flags) for flags, _ in FLAGS])
def test_keywords_equal_the_flags_of_the_program(log, program, flags, keywords):
    assert roundtrip.connections(log, **keywords).rows.to_pylist() == program(*flags)


def test_durations_count_as_in_the_program(program, tmp_path):
    path = tmp_path / "log.json"
    line = '{{"ts": {:.6f}, "remote_addr": "192.0.2.{}", "status": 200, "size": {}, "request_time": {:.3f}}}'
    path.write_text("".join(
        line.format(1_700_000_000 + row * 0.1234567, row % 7, row * 97 % 9_000, row % 40 / 10) + "\n" for row in range(2_000)
    ))
    for rule in ["least-recently-used", "idle-first"]:
        result = roundtrip.connections(path, rule=rule, durations=True, timeouts=[1, 5])
        assert result.rows.to_pylist() == program("--rule", rule, "--durations", "--timeout", "1,5", log=path)


def test_a_w3c_log_is_read_by_its_fields_in_every_block(program, tmp_path, monkeypatch):
    path = tmp_path / "u_ex.log"
    lines = [f"2026-11-21 08:{row // 60 % 60:02}:{row % 60:02} 192.0.2.{row % 9} 200 {row * 31 % 9_000}" for row in range(3_000)]
    path.write_text("#Software: IIS\r\n#Fields: date time c-ip sc-status sc-bytes\r\n" + "\r\n".join(lines) + "\r\n")
    monkeypatch.setattr("roundtrip.files.BLOCK", 1_000)
    assert roundtrip.connections(path).rows.to_pylist() == program(log=path)


@pytest.mark.parametrize("flags, sentence", [
    ({"per_client": [65]}, "65 connections per client"),
    ({"per_client": -1}, "per_client: -1 is not a whole number from 0"),
    ({"timeouts": []}, "no timeout; give one"),
    ({"timeouts": [float("nan")]}, "timeouts: nan is not a timeout; give seconds"),
    ({"timeouts": -1}, "timeouts: -1 is not a timeout; give seconds"),
    ({"timeouts": 0.0004}, "timeouts: 0.0004 is out of range; give whole milliseconds, up to a week"),
    ({"timeouts": 1e300}, "is out of range; give whole milliseconds, up to a week"),
    ({"thresholds": ["4k"]}, "thresholds: '4k' is not a whole number from 0"),
    ({"thresholds": range(17)}, "give at most 16"),
    ({"header_bytes": 2**64}, "header_bytes: 18446744073709551616 is not a whole number from 0"),
    ({"rule": "oldest"}, "unknown rule `oldest`.*least-recently-used"),
    ({"missing_size": "nought"}, "leave-out, zero, large"),
    ({"client_prefix": 33}, "`33, 64` is not a prefix; give bits such as 24"),
    ({"client_prefix": (1, 2, 3)}, "give bits such as 24"),
    ({"columns": {"tme": "ts"}}, "columns: unknown role `tme`; did you mean `time`?"),
])
def test_rejects_invalid_values_with_a_remedy(table, flags, sentence):
    with pytest.raises(ValueError, match=sentence):
        roundtrip.connections(table, **flags)


def test_rejects_uncountable_input_with_a_remedy(table, tmp_path):
    with pytest.raises(TypeError, match="unknown argument `timeout`; did you mean `timeouts`?"):
        roundtrip.connections(table, timeout=5)
    with pytest.raises(TypeError, match="int is neither a table nor a path"):
        roundtrip.connections(17)
    with pytest.raises(FileNotFoundError):
        roundtrip.connections(tmp_path / "none.log")
    with pytest.raises(FileNotFoundError, match="no such file; name another log"):
        roundtrip.connections(tmp_path / "*.log")
    with pytest.raises(ValueError, match="the log has no requests"):
        roundtrip.connections(table.slice(0, 0))
    with pytest.raises(ValueError, match='no response has a size; missing_size="zero"'):
        roundtrip.connections(table.drop_columns(["bytes"]))
    with pytest.raises(ValueError, match="no line could be read: 60000 a time that cannot be read"):
        roundtrip.connections(table.set_column(0, "time", pa.nulls(len(table), pa.int64())))
    diary = tmp_path / "diary.txt"
    diary.write_text("dear diary\n")
    with pytest.raises(ValueError, match="diary.txt: unknown access log format; name it as log_format"):
        roundtrip.connections(diary)
    with pytest.raises(ValueError, match="log_format: unknown log format `cfl`; did you mean `clf`"):
        roundtrip.connections(diary, log_format="cfl")
    with pytest.raises(ValueError, match="[Cc]ast.* Struct"):
        roundtrip.connections(table.set_column(1, "client", pa.array([{"a": 1}] * len(table))))


def test_bad_lines_and_missing_sizes_are_counted():
    lines = pd.DataFrame({"value": [CLF.format(0, 200, 17), CLF.format(1, 304, "-"), "dear diary"]})
    result = roundtrip.connections(lines)
    assert (result.bad, result.without_size) == (1, 1)
    assert result.bad_lines == {"not of the log's format": 1}
    assert result.rows.to_pylist()[0]["requests"] == 1
    counted = roundtrip.connections(lines, missing_size="zero")
    assert counted.rows.to_pylist()[0]["requests"] == 2


def test_a_line_of_megabytes_is_one_bad_line(tmp_path):
    path = tmp_path / "long.log"
    path.write_text(CLF.format(0, 200, 17) + "\n" + "x" * 20_000_000 + "\n" + CLF.format(1, 200, 17))
    result = roundtrip.connections(path)
    assert result.bad_lines == {"longer than 1 MiB": 1}
    assert result.rows.to_pylist()[0]["requests"] == 2


def test_extreme_sizes_do_not_overflow():
    table = pa.table({"time": [1, 2, 3], "client": ["h"] * 3, "bytes": pa.array([2**64 - 2] * 3, pa.uint64())})
    assert roundtrip.connections(table).rows.to_pylist()[0]["requests"] == 3


def test_a_query_can_be_pickled():
    query = roundtrip.Query(timeouts=[1], columns={"time": "ts"})
    assert pickle.loads(pickle.dumps(query)) == query


def test_former_names_resolve_with_a_warning(table):
    with pytest.warns(DeprecationWarning, match="roundtrip.Asked is deprecated; use roundtrip.Query"):
        asked = roundtrip.Asked(timeouts=[15])
    with pytest.warns(DeprecationWarning, match="use roundtrip.Result"):
        assert roundtrip.Answer is roundtrip.Result
    with pytest.warns(DeprecationWarning, match="use `query`"):
        former = roundtrip.connections(table, asked=asked)
    assert former == roundtrip.connections(table, roundtrip.Query(timeouts=[15]))
    with pytest.raises(AttributeError, match="no attribute 'Question'"):
        roundtrip.Question
