"""A synthetic log, as lines and as a table, and the program's rows of it.

ROUNDTRIP names the program; the default is the checkout's last build.
"""

import json
import os
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

# Spark must use loopback, whatever the host's name resolves to.
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

REQUESTS = 60_000
LINE = re.compile(r'(\S+) - - \[(.*?)\] ".*?" (\d+) (\S+)')


def _program() -> str:
    checkout = Path(__file__).resolve().parents[2]
    builds = [checkout / "target" / kind / "roundtrip" for kind in ("release", "debug")]
    from_environment = os.environ.get("ROUNDTRIP")
    candidates = [from_environment] if from_environment else [str(build) for build in builds if build.exists()]
    if not candidates:
        pytest.fail("no program to compare with: run `cargo build`, or set ROUNDTRIP")
    return candidates[0]


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "access.log"
    flags = ["--requests", str(REQUESTS), "--clients", "2000", "-o", str(path)]
    subprocess.run([_program(), "logs", "synthesize", *flags], check=True)
    return path


@pytest.fixture(scope="session")
def program(log):
    """The program's rows of this log or another one."""
    known = {}

    def rows(*flags, log=log):
        if (log, flags) not in known:
            command = [_program(), "connections", "--format", "json", *flags, log]
            known[log, flags] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return known[log, flags]

    return rows


@pytest.fixture(scope="session")
def table(log):
    fields = [LINE.match(line).groups() for line in log.read_text().splitlines()]
    times = [datetime.strptime(time, "%d/%b/%Y:%H:%M:%S %z").astimezone(timezone.utc) for _, time, _, _ in fields]
    return pa.table({
        "time": pa.array(times, pa.timestamp("ms", "UTC")),
        "client": [client for client, _, _, _ in fields],
        "status": pa.array([int(status) for _, _, status, _ in fields], pa.int32()),
        "bytes": pa.array([None if size == "-" else int(size) for _, _, _, size in fields], pa.int64()),
    })
