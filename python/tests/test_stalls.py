"""The context manager and the fixture, with a faulty server and with the fixed one."""

import os
import socket
import sys
import threading
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

HEADERS, BODY = b"h" * 60, b"b" * 600


def exchange(pieces, requests=12):
    """Exchanges this number of responses over one connection, each written in these pieces."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        while connection.recv(64):
            for piece in pieces:
                connection.sendall(piece)

    threading.Thread(target=serve, daemon=True).start()
    with socket.create_connection(listener.getsockname()) as client:
        for _ in range(requests):
            client.sendall(b"GET")
            left = len(HEADERS) + len(BODY)
            while left:
                left -= len(client.recv(left))


@pytest.fixture(autouse=True)
def _named(monkeypatch):
    from conftest import _program

    monkeypatch.setenv("ROUNDTRIP", _program())


def test_a_response_in_two_writes_stalls_and_in_one_does_not():
    from roundtrip.stalls import sentence, watched

    with watched() as stalls:
        exchange([HEADERS, BODY])
    assert [(stall["cause"], stall["side"]) for stall in stalls] == [("nagle-delayed-ack", "server")]
    assert "set TCP_NODELAY" in sentence(stalls[0])
    with watched() as stalls:
        exchange([HEADERS + BODY])
    assert stalls == []


def test_the_fixture_fails_a_test_that_stalls(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
    pytester.makeconftest('pytest_plugins = ["roundtrip.stalls"]')
    pytester.makepyfile(
        """
        from test_stalls import BODY, HEADERS, exchange

        def test_apart(no_stalls):
            exchange([HEADERS, BODY])

        def test_whole(no_stalls):
            exchange([HEADERS + BODY])
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*nagle-delayed-ack: server of 127.0.0.1:*"])
