"""A server with the fault, `server.py KIND apart`, or its fixed twin, `server.py KIND whole`. Prints its port.

KIND: h1, tls (HTTP/1.1 over TLS), h2, grpc (both in cleartext, with frames made by hand: gRPC's own library for Python
always sets TCP_NODELAY), or stdlib (`http.server` as it is: its headers and its body are two writes).
"""

import http.server
import os
import socket
import ssl
import struct
import sys
import threading

KIND, WAY = sys.argv[1:3]
BODY = b"x" * 600


def send(connection, pieces):
    for piece in pieces if WAY == "apart" else [b"".join(pieces)]:
        connection.sendall(piece)


def http1(connection):
    pending = b""
    while True:
        while b"\r\n\r\n" not in pending:
            received = connection.recv(65536)
            if not received:
                return
            pending += received
        pending = pending.split(b"\r\n\r\n", 1)[1]
        send(connection, [b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n", BODY])


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """HPACK: a literal field without indexing (RFC 7541, section 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def http2(connection):
    DATA, HEADERS, SETTINGS, PING = 0, 1, 4, 6
    reader = connection.makefile("rb")
    reader.read(24)
    connection.sendall(frame(SETTINGS, 0, 0, b""))
    while True:
        head = reader.read(9)
        if len(head) < 9:
            return
        length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream = int.from_bytes(head[5:], "big")
        payload = reader.read(length)
        if kind == SETTINGS and not flags & 1:
            connection.sendall(frame(SETTINGS, 1, 0, b""))
        if kind == PING and not flags & 1:
            connection.sendall(frame(PING, 1, 0, payload))
        if kind in (HEADERS, DATA) and flags & 1:
            if KIND == "grpc":
                message = b"\0" + struct.pack(">I", len(BODY)) + BODY
                start = b"\x88" + literal(b"content-type", b"application/grpc")
                pieces = [
                    frame(HEADERS, 4, stream, start),
                    frame(DATA, 0, stream, message),
                    frame(HEADERS, 5, stream, literal(b"grpc-status", b"0")),
                ]
            else:
                pieces = [frame(HEADERS, 4, stream, b"\x88"), frame(DATA, 1, stream, BODY)]
            send(connection, pieces)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Buffered, headers and body leave in one write.
    wbufsize = 0 if WAY == "apart" else -1

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "600")
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_):
        pass


if KIND == "stdlib":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
serve = {"h1": http1, "tls": http1, "h2": http2, "grpc": http2}[KIND]
while True:
    connection, _ = listener.accept()
    # HTTP/2's SETTINGS and their acknowledgement are small writes, too: one write for each response is not enough.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, WAY == "whole")
    if KIND == "tls":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.environ["GATE_CERT"], os.environ["GATE_KEY"])
        connection = context.wrap_socket(connection, server_side=True)
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
