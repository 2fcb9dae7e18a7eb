"""Stalls of a test's connections, found by `roundtrip watch` from the kernel's statistics: no packets, no root.

    from roundtrip.stalls import watched

    with watched() as stalls:
        requests.get("http://localhost:8000/")
    assert not stalls

As a pytest plugin (`pytest_plugins = ["roundtrip.stalls"]`) it provides the fixture `no_stalls`, which fails a test whose
connections stalled. ROUNDTRIP names the program; without it, PATH is searched.
"""

import json
import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from typing import Any, Iterator

# Severities that fail a test, as the exit status of `roundtrip watch` does.
FAILING = ("medium", "high")


def _program() -> str:
    program = os.environ.get("ROUNDTRIP") or shutil.which("roundtrip")
    if program is None:
        raise FileNotFoundError("`roundtrip` is not in PATH; install it, or set ROUNDTRIP to its path")
    return program


@contextmanager
def watched(port: int | None = None, interval: str = "1ms") -> Iterator[list[dict[str, Any]]]:
    """Watches this process and its children, or all sockets of a port.

    The list that it yields is filled when the block ends: a dictionary for each stall worth fixing, with the fields of
    `roundtrip watch --format json`.
    """
    scope = ["--pid", str(os.getpid())] if port is None else ["--port", str(port)]
    command = [_program(), "watch", *scope, "--interval", interval, "--format", "json"]
    stalls: list[dict[str, Any]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        begin = watch.stdout.readline()
        if not begin:
            raise RuntimeError(f"`roundtrip watch` ended with status {watch.wait()}")
        try:
            yield stalls
        finally:
            watch.send_signal(signal.SIGINT)
            found = {}
            for line in watch.stdout:
                event = json.loads(line)
                if event["event"] == "stall":
                    # Later events of a stall have the higher counts.
                    found[event["cause"], event["side"], event["server"], event["pid"]] = event
            stalls.extend(event for event in found.values() if event["severity"] in FAILING)


def sentence(stall: dict[str, Any]) -> str:
    """Formats a stall in one line, with its fixes."""
    fixes = "; ".join(f"{fix['who']}: {fix['change']}" for fix in stall["fixes"])
    lost = f"{stall['lost_ms']:.0f} ms lost in {stall['times']} stalls"
    return f"{stall['cause']}: {stall['side']} of {stall['server']}, {lost}: {stall['evidence']}. {fixes}"


try:
    import pytest
except ImportError:
    pass
else:

    @pytest.fixture
    def no_stalls() -> Iterator[list[dict[str, Any]]]:
        """Fails the test if connections of this process stalled."""
        with watched() as stalls:
            yield stalls
        if stalls:
            pytest.fail("\n".join(sentence(stall) for stall in stalls), pytrace=False)
