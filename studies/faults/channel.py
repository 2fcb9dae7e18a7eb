"""Both ends of an exchange over five transports: clear (HTTP/1.1), tls12, tls13 (HTTP/1.1 over TLS), h2c and h2 (HTTP/2).

HTTP/2 is framed by hand: a library decides for itself how its bytes are written.
"""

import os
import socket
import ssl
import struct
import time

TRANSPORTS = ["clear", "tls12", "tls13", "h2c", "h2"]
# Protocols other than HTTP have no name in the handshake.
HAS_ALPN = True
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
WIDEST = (1 << 31) - 1 - 65535


def context(transport, side, long_chain=False, other_group=False):
    """The TLS context of a side; None for transports in the clear."""
    if transport in ("clear", "h2c"):
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if side == "server" else ssl.PROTOCOL_TLS_CLIENT)
    version = ssl.TLSVersion.TLSv1_2 if transport == "tls12" else ssl.TLSVersion.TLSv1_3
    made.minimum_version = made.maximum_version = version
    # Only the contexts that Python configures by itself take it from there.
    made.keylog_filename = os.environ.get("SSLKEYLOGFILE") if side == "client" else None
    if HAS_ALPN:
        made.set_alpn_protocols(["h2"] if transport == "h2" else ["http/1.1"])
    if side == "server":
        made.load_cert_chain(os.environ["FAULTS_CHAIN" if long_chain else "FAULTS_CERT"], os.environ["FAULTS_KEY"])
        if other_group:
            made.set_ecdh_curve("secp384r1")
    else:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    return made


def handshake(connection, tls, pause):
    """The client's handshake, with a pause between the server's flight and the client's next."""
    if tls is None or not pause:
        return tls.wrap_socket(connection, server_hostname="localhost") if tls else connection
    # A callback within the handshake: the server's hello has arrived, and its flight with it.
    def delays(_socket, direction, _version, _content, message, _data, is_paused=[]):
        if direction == "read" and message.name in ("SERVER_HELLO", "CERTIFICATE") and not is_paused:
            is_paused.append(True)
            time.sleep(pause)

    tls._msg_callback = delays
    return tls.wrap_socket(connection, server_hostname="localhost")


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


class Http1:
    """HTTP/1.1 over a connected socket."""

    def __init__(self, connection, is_client, window=None):
        self.connection, self.pending = connection, b""

    def fill(self):
        received = self.connection.recv(65536)
        if not received:
            raise EOFError
        self.pending += received

    def message(self, pause=None):
        """The length of the next message's body, which it reads; `pause` is before each 4 kB of it."""
        while b"\r\n\r\n" not in self.pending:
            self.fill()
        head, self.pending = self.pending.split(b"\r\n\r\n", 1)
        lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        length = int(lengths[0].split(b":")[1]) if lengths else 0
        left = length - len(self.pending)
        self.pending = self.pending[length:]
        while left > 0:
            if pause:
                time.sleep(pause)
            received = self.connection.recv(min(left, 4096 if pause else 65536))
            if not received:
                raise EOFError
            left -= len(received)
        return length

    def pieces(self, start, length):
        head = start + b"Host: localhost\r\nContent-Length: " + str(length).encode() + b"\r\n\r\n"
        return [head, b"x" * length]

    def request(self, length):
        return self.pieces(b"POST /a HTTP/1.1\r\n" if length else b"GET /a HTTP/1.1\r\n", length)

    def response(self, length):
        return self.pieces(b"HTTP/1.1 200 OK\r\n", length)


class Http2:
    """HTTP/2 over a connected socket, one stream at a time. `window` is the client's, else it is the widest."""

    def __init__(self, connection, is_client, window=None):
        self.connection, self.is_client, self.window = connection, is_client, window
        self.pending, self.stream, self.is_open = b"", -1, False
        self.credit = [65535, 65535]
        if is_client:
            settings = struct.pack(">HI", 4, window or WIDEST)
            update = b"" if window else frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WIDEST))
            connection.sendall(PREFACE + frame(SETTINGS, 0, 0, settings) + update)
        else:
            self.read(len(PREFACE))
            update = frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WIDEST))
            connection.sendall(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, WIDEST)) + update)

    def read(self, length):
        while len(self.pending) < length:
            received = self.connection.recv(65536)
            if not received:
                raise EOFError
            self.pending += received
        taken, self.pending = self.pending[:length], self.pending[length:]
        return taken

    def frame(self):
        """The next frame of a message; control frames are handled here."""
        while True:
            head = self.read(9)
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream, payload = int.from_bytes(head[5:], "big"), self.read(length)
            if kind == SETTINGS and not flags & 1:
                if not self.is_client and payload:
                    self.limit = int.from_bytes(payload[2:6], "big")
                self.connection.sendall(frame(SETTINGS, 1, 0, b""))
            elif kind == PING and not flags & 1:
                self.connection.sendall(frame(PING, 1, 0, payload))
            elif kind == WINDOW_UPDATE:
                self.credit[stream != 0] += int.from_bytes(payload, "big")
            elif kind in (HEADERS, DATA):
                return kind, flags, stream, payload

    def message(self, pause=None):
        length, is_over = 0, False
        while not is_over:
            kind, flags, stream, payload = self.frame()
            if not self.is_client:
                self.stream = stream
            if kind == DATA:
                length, is_over = length + len(payload), bool(flags & 1)
                if pause:
                    time.sleep(pause * max(len(payload) // 4096, 1))
                if self.window and not is_over:
                    for updated in (0, stream):
                        self.connection.sendall(frame(WINDOW_UPDATE, 0, updated, struct.pack(">I", len(payload))))
            is_over = is_over or bool(flags & 1)
        return length

    def pieces(self, fields, length):
        if self.is_client:
            self.stream += 2
        parts = [b"x" * min(16384, length - at) for at in range(0, length, 16384)]
        data = [frame(DATA, at == len(parts) - 1, self.stream, part) for at, part in enumerate(parts)]
        return [frame(HEADERS, 4 | (length == 0), self.stream, fields), b"".join(data)]

    def request(self, length):
        return self.pieces(b"\x83\x86\x84" if length else b"\x82\x86\x84", length)

    def response(self, length):
        return self.pieces(b"\x88", length)

    def send_within_windows(self, length):
        """Sends a response within the client's windows: waits for updates when they are used up."""
        self.credit = [65535, self.limit]
        head, _ = self.pieces(b"\x88", length)
        self.connection.sendall(head)
        while length:
            part = min(16384, length, *self.credit)
            if part == 0:
                head = self.read(9)
                payload = self.read(int.from_bytes(head[:3], "big"))
                if head[3] == WINDOW_UPDATE:
                    self.credit[int.from_bytes(head[5:], "big") != 0] += int.from_bytes(payload, "big")
                continue
            length -= part
            self.credit = [credit - part for credit in self.credit]
            self.connection.sendall(frame(DATA, length == 0, self.stream, b"x" * part))


def speak(transport, connection, is_client, window=None):
    return (Http2 if transport in ("h2", "h2c") else Http1)(connection, is_client, window)


def tune(connection, nodelay, send_buffer=None, receive_buffer=None, congestion=None):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
    for option, size in ((socket.SO_SNDBUF, send_buffer), (socket.SO_RCVBUF, receive_buffer)):
        if size:
            connection.setsockopt(socket.SOL_SOCKET, option, size)
    if congestion:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion)
