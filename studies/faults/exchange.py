"""One fault with its twin: `exchange.py FAULT TRANSPORT faulty|healthy`; `exchange.py list` prints the faults.

Client and server are two processes on loopback addresses. A fault is a row of `FAULTS`: settings of the general exchange
that differ from the healthy ones; or of `SPECIAL`: a program of its own.
"""

import os
import signal
import socket
import sys
import time

import channel
import special

# Settings of a healthy exchange. Times are in seconds.
HEALTHY = {
    "requests": 8,
    "request": 0,
    "response": 600,
    "pause": 0,  # of the client between requests
    "nodelay": (True, True),  # client, server
    "client_pieces": False,
    "server_pieces": False,
    "think": 0,  # of the server before a response
    "stall": 0,  # of the server within a response
    "is_corked": False,
    "send_buffer": (None, None),
    "receive_buffer": (None, None),
    "reading": (None, None),  # pause before each 4 kB
    "connections": "kept",  # or closed, left: a new one for each request
    "chunks": 0,  # of the server's writes
    "window": None,  # of HTTP/2
    "is_chain_long": False,
    "has_other_group": False,
    "handshake": 0,  # pause of the client
    "congestion": None,  # control of both
}

# Reno: a sender that paces itself by what a small window let it measure does not show the path's rate.
BULK = {"requests": 3, "response": 200_000, "congestion": b"reno"}
UPLOAD = {"requests": 3, "request": 200_000, "congestion": b"reno"}
POST = {"request": 900}

# Fault: (settings of both, settings of the fault).
FAULTS = {
    "nagle-server": ({}, {"server_pieces": True, "nodelay": (True, False)}),
    "nagle-client": (POST, {"client_pieces": True, "nodelay": (False, True)}),
    "nagle-both": (POST, {"client_pieces": True, "server_pieces": True, "nodelay": (False, False)}),
    "think": ({"requests": 5}, {"think": 0.3}),
    "think-posts": ({"requests": 5, "request": 3_000}, {"think": 0.3}),
    "think-over-path": ({"requests": 5}, {"think": 0.3}),
    "first-byte": ({"requests": 2, "response": 30_000}, {"think": 1.2}),
    "stall-within": ({"requests": 3, "response": 40_000}, {"stall": 0.4}),
    "cork": ({"requests": 5}, {"is_corked": True}),
    "send-buffer": (BULK, {"send_buffer": (None, 8_192), "chunks": 4_096}),
    "receive-window": (BULK, {"receive_buffer": (8_192, None)}),
    "receive-window-upload": (UPLOAD, {"receive_buffer": (None, 8_192)}),
    "slow-reader": (
        {"requests": 1, "response": 400_000},
        {"receive_buffer": (8_192, None), "reading": (0.008, None)},
    ),
    "slow-reader-upload": (
        {"requests": 1, "request": 400_000},
        {"receive_buffer": (None, 8_192), "reading": (None, 0.008)},
    ),
    "per-request-closed": ({}, {"connections": "closed"}),
    "per-request-left": ({}, {"connections": "left"}),
    "idle-restart": ({"requests": 4, "response": 100_000, "congestion": b"reno"}, {"pause": 1.0}),
    "hello-retry": ({"requests": 4}, {"has_other_group": True}),
    "certificates": ({"requests": 4}, {"is_chain_long": True}),
    "handshake-stall": ({"requests": 4}, {"handshake": 0.9}),
    "http2-window": ({"requests": 2, "response": 300_000}, {"window": 16_384}),
    "loss": ({"requests": 60, "response": 20_000}, {}),
    "bulk": ({"requests": 3, "response": 1_500_000}, {}),
    "syn-dropped": ({"requests": 3}, {}),
}


def respond(speaker, connection, settings):
    """Sends one response."""
    time.sleep(settings["think"])
    if settings["window"]:
        return speaker.send_within_windows(settings["response"])
    head, body = speaker.response(settings["response"])
    if settings["server_pieces"]:
        connection.sendall(head)
        connection.sendall(body)
    elif settings["stall"]:
        connection.sendall(head + body[:9_000])
        time.sleep(settings["stall"])
        connection.sendall(body[9_000:])
    elif settings["chunks"]:
        whole = head + body
        for at in range(0, len(whole), settings["chunks"]):
            connection.sendall(whole[at : at + settings["chunks"]])
    else:
        connection.sendall(head + body)


def serve_one(plain, transport, settings):
    channel.tune(plain, settings["nodelay"][1], settings["send_buffer"][1], None, settings["congestion"])
    tls = channel.context(transport, "server", settings["is_chain_long"], settings["has_other_group"])
    connection = tls.wrap_socket(plain, server_side=True) if tls else plain
    if settings["is_corked"]:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    speaker = channel.speak(transport, connection, False)
    while True:
        speaker.message(settings["reading"][1])
        respond(speaker, connection, settings)


def serve(listener, transport, settings):
    """Serves each connection in a process of its own, until it is ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        plain, _ = listener.accept()
        if os.fork() == 0:
            try:
                serve_one(plain, transport, settings)
            except (EOFError, OSError):
                pass
            os._exit(0)
        plain.close()


def connect(address, transport, settings):
    plain = socket.socket()
    buffers = settings["send_buffer"][0], settings["receive_buffer"][0]
    channel.tune(plain, settings["nodelay"][0], *buffers, settings["congestion"])
    plain.connect(address)
    connection = channel.handshake(plain, channel.context(transport, "client"), settings["handshake"])
    return connection, channel.speak(transport, connection, True, settings["window"])


def request(connection, speaker, settings):
    head, body = speaker.request(settings["request"])
    if settings["client_pieces"]:
        connection.sendall(head)
        connection.sendall(body)
    else:
        connection.sendall(head + body)
    speaker.message(settings["reading"][0])


def visit(address, transport, settings):
    opened = []
    for number in range(settings["requests"]):
        if not opened or settings["connections"] != "kept":
            if opened and settings["connections"] == "closed":
                opened[-1][0].close()
            opened.append(connect(address, transport, settings))
        if number:
            time.sleep(settings["pause"])
        request(*opened[-1], settings)
    for connection, _ in opened:
        connection.close()


def general(fault, transport, is_faulty):
    common, faulty = FAULTS[fault]
    settings = {**HEALTHY, **common, **(faulty if is_faulty else {})}
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if settings["receive_buffer"][1]:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings["receive_buffer"][1])
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    server = os.fork()
    if server == 0:
        try:
            serve(listener, transport, settings)
        finally:
            os._exit(0)
    try:
        visit(listener.getsockname(), transport, settings)
    finally:
        time.sleep(0.05)
        os.kill(server, signal.SIGTERM)


def main():
    if sys.argv[1:] == ["list"]:
        print("\n".join([*FAULTS, *special.FAULTS]))
        return
    fault, transport, way = sys.argv[1:]
    if fault in FAULTS:
        general(fault, transport, way == "faulty")
    else:
        try:
            special.FAULTS[fault](transport, way == "faulty")
        finally:
            special.end()


main()
