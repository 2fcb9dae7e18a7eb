"""Engines, diagnosis and pages from Python: the same digits as the command line, Arrow without copies, threads, Ctrl-C."""

import csv
import io
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
import roundtrip

from conftest import _program

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = sorted((ROOT / "fuzz/corpus/capture").iterdir())


def program(*arguments):
    return subprocess.run([_program(), *map(str, arguments)], check=True, capture_output=True).stdout.decode()


GRID = {"rtt": "20ms..80ms*2", "rate": "10Mbit", "loss": ["0%", "burst:1%/50%"], "protocol": ["http11", "http10"], "seed": range(2)}
FLAGS = ["--rtt", "20ms..80ms*2", "--rate", "10Mbit", "--loss", "0%,burst:1%/50%", "--protocol", "http11,http10", "--seed", "0,1"]


@pytest.mark.parametrize(
    ("verb", "keywords", "flags"),
    [
        (roundtrip.predict, {}, ["predict"]),
        (roundtrip.predict, GRID, ["predict", *FLAGS]),
        (roundtrip.simulate, {**GRID, "runs": 3, "queue": "20p"}, ["simulate", *FLAGS, "--runs", "3", "--queue", "20p"]),
        (
            roundtrip.simulate,
            {"network": ["4g", "modem"], "initial_window": [2, 4], "nagle": False, "client_think": "2ms"},
            ["simulate", "--network", "4g,modem", "--initial-window", "2,4", "--nagle", "off", "--client-think", "2ms"],
        ),
        (roundtrip.compare, {"network": "cable"}, ["compare", "--network", "cable", "--engine", "model,simulate"]),
    ],
)
def test_rows_are_the_command_lines_to_the_last_digit(verb, keywords, flags):
    rows = verb(**keywords)
    assert rows.to_csv() == program(*flags, "--format", "csv")
    # The Arrow table has the same values, typed.
    table = pa.table(rows)
    expected = list(csv.DictReader(io.StringIO(rows.to_csv(), newline="")))
    assert len(rows) == len(table) == len(expected)
    assert [*table.column_names[:-1], "stalls", "notes"] == list(expected[0])
    for name in table.column_names[:-1]:
        cells = [row[name] for row in expected]
        for value, cell in zip(table.column(name).to_pylist(), cells):
            assert (cell == "" if value is None else value == type(value)(cell)), (name, value, cell)


def test_stalls_are_the_command_lines_long_table(tmp_path):
    rows = roundtrip.simulate(**GRID)
    program("simulate", *FLAGS, "--stalls", tmp_path / "stalls.csv")
    expected = list(csv.DictReader((tmp_path / "stalls.csv").open(newline="")))
    table = pa.table(rows.stalls)
    assert table.column_names == list(expected[0])
    assert [(row["row"], row["cause"], row["lost_ms"]) for row in table.to_pylist()] == [
        (int(row["row"]), row["cause"], float(row["lost_ms"])) for row in expected
    ]


def test_columns_are_typed_and_any_number_of_threads_gives_the_same_rows():
    one, two = (pa.table(roundtrip.simulate(**GRID, threads=threads)) for threads in (1, 2))
    assert one.equals(two)
    types = {field.name: field.type for field in one.schema}
    assert (types["rtt_ms"], types["seed"], types["runs"]) == (pa.float64(), pa.uint64(), pa.uint32())
    assert types["notes"] == pa.list_(pa.string())
    assert one.column("loss_percent").to_pylist().count(None) == len(one) // 2
    assert set(one.column("loss").to_pylist()) == {"none", "burst:1%/50%/100%/0%"}


def test_pandas_takes_the_rows():
    pandas = pytest.importorskip("pandas")
    frame = pa.table(roundtrip.predict(network="4g", loss=["0%", "1%"], protocol="http11")).to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame["loss_percent"]) == [0.0, 1.0]


def test_every_key_of_a_scenario_is_a_keyword():
    settings = (ROOT / "docs/reference/settings.md").read_text().split("## Scenarios")[1].split("\n## ")[0]
    keys = {line.split("`")[1].replace("-", "_") for line in settings.splitlines() if line.startswith("| `")}
    assert keys == set(roundtrip.Scenario.__annotations__)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"network": "4h"}, "unknown network `4h`"),
        ({"rtt": "20"}, "rtt: `20` is not a duration"),
        ({"rtt": "20ms"}, "needs rtt and rate"),
        ({"colour": "red"}, "unknown argument"),
        ({"seed": range(1_000_000), "parallel": range(1, 12), "protocol": "http10"}, "11000000 scenarios are too many"),
    ],
)
def test_errors_are_the_command_lines_sentences(keywords, sentence):
    with pytest.raises(ValueError, match=sentence):
        roundtrip.predict(**keywords)


def test_a_value_of_another_type_is_a_type_error():
    with pytest.raises(TypeError, match="rtt: dict|rtt: NoneType"):
        roundtrip.predict(rtt=None)


def test_plots_are_svg_and_too_many_rows_are_refused():
    heat = roundtrip.predict(rtt="10ms..80ms*3", rate="1Mbit..10Mbit*3", protocol=["http11", "http10"]).plot()
    assert heat.startswith("<svg") and "rate_down_mbps" in heat and heat._repr_svg_() == heat
    assert "predicted" in roundtrip.predict(network="4g").plot()
    with pytest.raises(ValueError, match="too many for a picture"):
        roundtrip.predict(seed=range(100), protocol="http11").plot()


def test_diagnosis_is_the_command_lines(tmp_path):
    capture = next(path for path in CAPTURES if path.name == "nagle")
    diagnosis = roundtrip.diagnose(capture)
    run = subprocess.run([_program(), "diagnose", capture, "--format", "json"], capture_output=True, check=False)
    assert diagnosis.json == [json.loads(run.stdout)]
    assert diagnosis.fails is (run.returncode == 1)
    findings = diagnosis.findings.to_pylist()
    assert [finding["cause"] for finding in findings] and all(isinstance(finding["lost_ms"], float) for finding in findings)
    several = roundtrip.diagnose([capture, capture.read_bytes()])
    assert len(several) == 2 * len(diagnosis)
    (tmp_path / "text").write_text("no capture")
    with pytest.raises(ValueError, match="text"):
        roundtrip.diagnose(tmp_path / "text")
    with pytest.raises(OSError):
        roundtrip.diagnose(tmp_path / "missing")


def test_pages_are_graphs_and_scenarios_take_them():
    page = roundtrip.page("6651+3883+1866")
    assert page.json == json.loads(program("page", "6651+3883+1866", "--format", "json"))[0]
    assert len(page.objects) == 3 and page._repr_svg_().startswith("<svg")
    rows = pa.table(roundtrip.predict(page=[page, "small-page"], protocol="http11", network="4g"))
    assert rows.column("page").to_pylist() == ["6651+3883+1866", "small-page"]
    har = ROOT / "fuzz/corpus/har"
    recordings = [path for path in har.iterdir() if path.is_file()] if har.is_dir() else []
    readable = 0
    for recording in recordings:
        try:
            readable += len(roundtrip.page(recording.read_bytes(), number=1).objects) > 0
        except ValueError as error:
            assert str(error)
    assert readable > 0
    with pytest.raises(ValueError, match="not a page"):
        roundtrip.page("http://example.com/")


def test_other_threads_run_meanwhile():
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    roundtrip.simulate(network="4g", loss="2%", page="large-cluster", seed=range(200), threads=1)
    elapsed = time.monotonic() - started
    done.set()
    thread.join()
    # The interpreter's lock is free: an uninterrupted run would leave one tick.
    assert len(ticks) > min(10, elapsed / 0.1)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_a_run():
    script = "import roundtrip; print('begun', flush=True); roundtrip.simulate(network='4g', loss='2%', seed=range(1000000))"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
