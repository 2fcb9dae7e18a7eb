"""Eleven faults of published projects, each as a small program: `patterns.py NAME fault` or `patterns.py NAME fixed`.

Both ends run in this process, on loopback. Small writes, Nagle's algorithm and delayed acknowledgements meet in each; the
fixed twin has the change that the project made. `patterns.py list` prints the names.
"""

import socket
import struct
import sys
import threading

REQUESTS = 12


def receive(connection, length):
    parts = []
    while length:
        part = connection.recv(min(length, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def pair(serve):
    """A connection to a server that runs `serve`; both with Nagle's algorithm."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        connection, _ = listener.accept()
        try:
            serve(connection)
        except (EOFError, ConnectionError):
            pass

    threading.Thread(target=accept, daemon=True).start()
    return socket.create_connection(listener.getsockname())


def nodelay(connection, is_fixed):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, is_fixed)
    return connection


def request_response(is_fixed, request, response, option=True):
    """Requests and responses as lists of writes. The fix is TCP_NODELAY, or one write."""

    def write(connection, pieces):
        for piece in pieces if option or not is_fixed else [b"".join(pieces)]:
            connection.sendall(piece)

    def serve(connection):
        nodelay(connection, is_fixed and option)
        while True:
            receive(connection, sum(map(len, request)))
            write(connection, response)

    client = nodelay(pair(serve), is_fixed and option)
    for _ in range(REQUESTS):
        write(client, request)
        receive(client, sum(map(len, response)))


def relay(is_fixed):
    """NVIDIA/OpenShell#2219: a proxy between two connections passes small frames on as they come."""

    def origin(connection):
        nodelay(connection, True)
        while True:
            receive(connection, 60)
            for _ in range(2):
                connection.sendall(b"f" * 90)
                threading.Event().wait(0.001)

    upstream = nodelay(pair(origin), True)

    def proxy(connection):
        nodelay(connection, is_fixed)

        def forward():
            while True:
                connection.sendall(receive(upstream, 90))

        threading.Thread(target=forward, daemon=True).start()
        while True:
            upstream.sendall(receive(connection, 60))

    client = pair(proxy)
    for _ in range(REQUESTS):
        client.sendall(b"r" * 60)
        receive(client, 180)


def stream_of_tokens(is_fixed):
    """alibaba/rtp-llm#1080: tokens are written one by one, faster than they are acknowledged."""

    def serve(connection):
        nodelay(connection, is_fixed)
        while True:
            receive(connection, 40)
            for _ in range(8):
                connection.sendall(b"data: token\n\n")
                threading.Event().wait(0.002)

    client = pair(serve)
    for _ in range(REQUESTS):
        client.sendall(b"p" * 40)
        receive(client, 8 * 13)


def short_final_segment(is_fixed):
    """dragonflyoss/client#2054: the last, short piece of a response after a longer one."""

    def serve(connection):
        nodelay(connection, is_fixed)
        while True:
            receive(connection, 50)
            connection.sendall(b"d" * 536)
            connection.sendall(b"d" * 13)

    client = pair(serve)
    for _ in range(REQUESTS):
        client.sendall(b"r" * 50)
        receive(client, 549)


FRAME, JSON = struct.pack(">I", 300), b'{"ok":true}'
PATTERNS = {
    "openshell-2219": relay,
    # The header of a command's result, then its output.
    "agentenv-109": lambda fixed: request_response(fixed, [b"c" * 80], [b"h" * 16, b"o" * 700]),
    # A length, then the message, in both directions.
    "mirrord-4645": lambda fixed: request_response(fixed, [FRAME, b"m" * 300], [FRAME, b"m" * 300]),
    # A client that writes its request's headers and body apart.
    "pentect-1129": lambda fixed: request_response(fixed, [b"h" * 120, b"b" * 400], [b"r" * 200]),
    "dragonfly-2054": short_final_segment,
    # A tunnel: two frames for each packet that it carries.
    "ghostlink-103": lambda fixed: request_response(fixed, [b"k" * 12, b"p" * 90], [b"k" * 12, b"p" * 90]),
    # A call over loopback: the method, the arguments.
    "lumabri-172": lambda fixed: request_response(fixed, [b"m" * 24, b"a" * 48], [b"v" * 64]),
    "rtp-llm-1080": stream_of_tokens,
    # Headers and an object's first bytes; the fix is one write.
    "openlake-29": lambda fixed: request_response(fixed, [b"g" * 90], [b"h" * 150, b"o" * 1000], option=False),
    # A control channel: JSON, then its line feed.
    "xfr-77": lambda fixed: request_response(fixed, [JSON, b"\n"], [JSON, b"\n"]),
    # Headers by one call, the body by another; the fix is one write.
    "uhttpd-34": lambda fixed: request_response(fixed, [b"g" * 70], [b"h" * 110, b"b" * 600], option=False),
}

if sys.argv[1] == "list":
    print(*PATTERNS)
else:
    PATTERNS[sys.argv[1]](sys.argv[2] == "fixed")
