"""Faults, and healthy programs that look like one, that need a program of their own. Each is a function of the transport and
of whether it is faulty."""

import os
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import channel

REQUESTS = 6
# Servers, which end with the program.
CHILDREN = []


def fork():
    child = os.fork()
    if child:
        CHILDREN.append(child)
    return child


def end():
    time.sleep(0.05)
    for child in CHILDREN:
        os.kill(child, signal.SIGKILL)


def respond(speaker, connection, length=600):
    head, body = speaker.response(length)
    connection.sendall(head + body)


def ask(speaker, connection, length=0):
    head, body = speaker.request(length)
    connection.sendall(head + body)
    return speaker.message()


def server(transport, serve, backlog=64):
    """The address of a server in a process of its own, which passes each connection to `serve(speaker, connection)`."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=backlog)
    if fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            plain, _ = listener.accept()
            if os.fork() == 0:
                try:
                    channel.tune(plain, True)
                    tls = channel.context(transport, "server")
                    connection = tls.wrap_socket(plain, server_side=True) if tls else plain
                    serve(channel.speak(transport, connection, False), connection)
                except (EOFError, OSError):
                    pass
                os._exit(0)
            plain.close()
    address = listener.getsockname()
    listener.close()
    return address


def client(transport, address):
    plain = socket.create_connection(address)
    channel.tune(plain, True)
    connection = channel.handshake(plain, channel.context(transport, "client"), 0)
    return channel.speak(transport, connection, True), connection


def visit(transport, address, count=REQUESTS, length=0):
    speaker, connection = client(transport, address)
    for _ in range(count):
        ask(speaker, connection, length)
    connection.close()


def always(serve_one):
    """A server's loop: `serve_one(speaker, connection)` after each request."""

    def serve(speaker, connection):
        while True:
            speaker.message()
            serve_one(speaker, connection)

    return serve


def refused(transport, is_faulty):
    address = server(transport, always(respond))
    if is_faulty:
        for _ in range(3):
            try:
                socket.create_connection(("127.0.0.1", 9))
            except OSError:
                pass
    visit(transport, address)


def reset(transport, is_faulty):
    """The server aborts in the middle of a response."""

    def half(speaker, connection):
        head, body = speaker.response(60_000)
        if not is_faulty:
            return connection.sendall(head + body)
        connection.sendall(head + body[:30_000])
        time.sleep(0.05)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
        os._exit(0)

    try:
        visit(transport, server(transport, always(half)))
    except (EOFError, OSError):
        pass


def backlog(transport, is_faulty):
    """Clients arrive at once at a server that accepts none for a while."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0 if is_faulty else 64)
    if fork() == 0:
        time.sleep(0.5 if is_faulty else 0)
        while True:
            plain, _ = listener.accept()
            channel.tune(plain, True)
            tls = channel.context(transport, "server")

            def serve(plain=plain):
                try:
                    connection = tls.wrap_socket(plain, server_side=True) if tls else plain
                    always(respond)(channel.speak(transport, connection, False), connection)
                except (EOFError, OSError):
                    pass

            threading.Thread(target=serve, daemon=True).start()
    address = listener.getsockname()
    threads = [threading.Thread(target=visit, args=(transport, address, 2)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def alert(transport, is_faulty):
    """The client does not trust the certificate."""
    address = server(transport, always(respond))
    tls = channel.context(transport, "client")
    if is_faulty:
        tls.verify_mode = ssl.CERT_REQUIRED
    try:
        plain = socket.create_connection(address)
        connection = tls.wrap_socket(plain, server_hostname="localhost")
        speaker = channel.speak(transport, connection, True)
        for _ in range(REQUESTS):
            ask(speaker, connection)
    except ssl.SSLError:
        plain.close()


def events(transport, _):
    """Healthy: a response of events, one each 250 ms."""

    def stream(speaker, connection):
        if isinstance(speaker, channel.Http1):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(8):
                time.sleep(0.25)
                connection.sendall(b"c\r\ndata: event\n\n\r\n"[:4] + b"data: event\n" + b"\r\n")
            connection.sendall(b"0\r\n\r\n")
        else:
            connection.sendall(channel.frame(channel.HEADERS, 4, speaker.stream, b"\x88"))
            for number in range(8):
                time.sleep(0.25)
                connection.sendall(channel.frame(channel.DATA, number == 7, speaker.stream, b"data: event\n\n"))

    speaker, connection = client(transport, server(transport, always(stream)))
    head, _ = speaker.request(0)
    connection.sendall(head)
    if isinstance(speaker, channel.Http2):
        speaker.message()
    else:
        while b"0\r\n\r\n" not in speaker.pending[-5:]:
            speaker.fill()
    connection.close()


def updates(transport, _):
    """Healthy: events of a stream of HTTP/2, each followed by the client's WINDOW_UPDATE and PING."""

    def stream(speaker, connection):
        connection.sendall(channel.frame(channel.HEADERS, 4, speaker.stream, b"\x88"))
        # Reads in a thread: an endpoint acknowledges a PING as soon as it has it.
        threading.Thread(target=reads, args=(speaker,), daemon=True).start()
        for number in range(8):
            time.sleep(0.25)
            connection.sendall(channel.frame(channel.DATA, number == 7, speaker.stream, b"x" * 90))
        time.sleep(1)

    def reads(speaker):
        try:
            while True:
                speaker.frame()
        except (EOFError, OSError):
            pass

    speaker, connection = client(transport, server(transport, always(stream)))
    head, _ = speaker.request(0)
    connection.sendall(head)
    is_over = False
    while not is_over:
        kind, flags, stream_id, payload = speaker.frame()
        is_over = bool(flags & 1)
        if kind == channel.DATA:
            update = channel.frame(channel.WINDOW_UPDATE, 0, 0, len(payload).to_bytes(4, "big"))
            connection.sendall(update + channel.frame(channel.PING, 0, 0, b"12345678"))
    # Reads the last acknowledgement: what is unread at a close is answered by a reset.
    time.sleep(0.05)
    connection.recv(65536)
    connection.close()


def pushes(transport, _):
    """Healthy: after 101 (Switching Protocols) the server sends a message each 300 ms, and the client none."""
    websocket(transport, False)


def late_messages(transport, is_faulty):
    """WebSocket: each message is answered late, before the client sends the next."""
    websocket(transport, True, 0.3 if is_faulty else 0)


def late_replies(transport, is_faulty):
    """The same in a protocol that has no name in the handshake, as those of databases."""
    channel.HAS_ALPN = False
    late_messages(transport, is_faulty)


def greeting(transport, is_faulty):
    """The server speaks first, as those of mail do, and late."""
    channel.HAS_ALPN = False

    def serve(_, connection):
        time.sleep(0.6 if is_faulty else 0)
        connection.sendall(b"220 ready, and more text than an alert has\r\n")
        while connection.recv(65536):
            connection.sendall(b"250 fine\r\n")

    _, connection = client(transport, server(transport, serve))
    connection.recv(65536)
    for _ in range(REQUESTS):
        connection.sendall(b"NOOP and some words that make it longer\r\n")
        connection.recv(65536)
    connection.close()


def heartbeats(transport, _):
    """Healthy: both sides send a few bytes by clocks of their own, the server first."""
    channel.HAS_ALPN = False

    def beat(connection, pause):
        for _ in range(6):
            time.sleep(pause)
            connection.sendall(b"still here")

    def serve(_, connection):
        threading.Thread(target=beat, args=(connection, 0.37)).start()
        while connection.recv(100):
            pass

    _, connection = client(transport, server(transport, serve))
    beat(connection, 0.53)
    connection.close()


def short_messages(transport, is_faulty):
    """WebSocket: the shortest of questions, each answered late by a longer message."""
    websocket(transport, True, 0.4 if is_faulty else 0, 10)


UPGRADE = b"GET /chat HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
SWITCHES = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


def websocket(transport, is_asked, pause=0.3, asked=32):
    message = b"\x81\x20" + b"m" * 32

    def serve(speaker, connection):
        speaker.message()
        connection.sendall(SWITCHES)
        while True:
            if is_asked:
                speaker.fill()
            time.sleep(pause)
            connection.sendall(message)

    speaker, connection = client(transport, server(transport, serve))
    connection.sendall(UPGRADE)
    while b"\r\n\r\n" not in speaker.pending:
        speaker.fill()
    for _ in range(8):
        if is_asked:
            connection.sendall(bytes((0x81, 0x80 + asked)) + b"mask" + b"q" * asked)
        speaker.fill()
    connection.close()


def expects(transport, is_faulty):
    """The client waits for 100 (Continue), a round trip, before each body."""

    def serve(speaker, connection):
        while True:
            while b"\r\n\r\n" not in speaker.pending:
                speaker.fill()
            if b"100-continue" in speaker.pending:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            speaker.message()
            respond(speaker, connection)

    speaker, connection = client(transport, server(transport, serve))
    for _ in range(REQUESTS):
        expect = b"Expect: 100-continue\r\n" if is_faulty else b""
        head, body = speaker.pieces(b"PUT /a HTTP/1.1\r\n" + expect, 3_000)
        if is_faulty:
            connection.sendall(head)
            while b"\r\n\r\n" not in speaker.pending:
                speaker.fill()
            speaker.pending = speaker.pending.split(b"\r\n\r\n", 1)[1]
            connection.sendall(body)
        else:
            connection.sendall(head + body)
        speaker.message()
    connection.close()


def proxy(transport, is_faulty):
    """A relay in a process of its own before a server that writes headers and body apart, with Nagle's algorithm."""

    def apart(speaker, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not is_faulty)
        head, body = speaker.response(600)
        for piece in [head, body] if is_faulty else [head + body]:
            connection.sendall(piece)

    origin = server("clear", always(apart))

    def relay(speaker, connection):
        inner, upstream = client("clear", origin)
        while True:
            speaker.message()
            length = ask(inner, upstream)
            respond(speaker, connection, length)

    visit(transport, server(transport, relay))


def datagrams(_, is_faulty):
    """QUIC's Initial packets, of which none gets a response."""
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(silent.getsockname())
    if not is_faulty:
        return visit("clear", server("clear", always(respond)))
    start = b"\xc0\0\0\0\1\x08" + b"identity" + b"\x08" + b"fromhere" + b"\0\x44\x9e"
    for gap in (0.3, 0.6, 1.2, 0):
        sender.send(start + os.urandom(1_200 - len(start)))
        time.sleep(gap)


def await_listener(port):
    """Waits without a connection: one that is refused would be a finding."""
    while not any(
        line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in open("/proc/net/tcp").readlines()[1:]
    ):
        time.sleep(0.01)


class Redis:
    """A Redis server in a directory of its own."""

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = free.getsockname()
        command = ["redis-server", "--port", str(self.address[1]), "--dir", self.directory.name, "--save", ""]
        ready = self.directory.name + "/ready"
        options = ["--bind", "127.0.0.1", "--protected-mode", "no", "--unixsocket", ready]
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
        # Another kind of socket is asked whether it is ready: what is refused would be a finding.
        while True:
            try:
                socket.socket(socket.AF_UNIX).connect(ready)
                return self
            except OSError:
                time.sleep(0.02)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()

    def connect(self):
        connection = socket.create_connection(self.address)
        channel.tune(connection, True)
        return connection


def command(connection, *words):
    parts = [f"*{len(words)}\r\n".encode()] + [f"${len(word)}\r\n{word}\r\n".encode() for word in words]
    connection.sendall(b"".join(parts))
    return connection.recv(65536)


def redis_think(_, is_faulty):
    script = "local n = 0; for i = 1, tonumber(ARGV[1]) do n = n + i end; return n"
    with Redis() as redis:
        connection = redis.connect()
        for _ in range(4):
            command(connection, "EVAL", script, "0", "40000000" if is_faulty else "10")


def redis_blocks(_, __):
    """Healthy: BLPOP waits for an element that another client pushes."""
    with Redis() as redis:
        pushes, pops = redis.connect(), redis.connect()
        for _ in range(4):
            pushing = threading.Timer(0.6, command, (pushes, "RPUSH", "queue", "x"))
            pushing.start()
            command(pops, "BLPOP", "queue", "5")
            pushing.join()


def redis_per_command(_, is_faulty):
    with Redis() as redis:
        connection = redis.connect()
        for _ in range(10):
            if is_faulty:
                connection.close()
                connection = redis.connect()
            command(connection, "GET", "key")


def postgres(query, is_kept=True, count=4):
    """Queries to a PostgreSQL server in a directory of its own, by psql."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        data = directory + "/data"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": directory}
        subprocess.run([*as_user, "initdb", "-D", data, "-U", "test", "-A", "trust", "--no-sync"], check=True, **quiet)
        # The emulated link has addresses of its own.
        with open(data + "/pg_hba.conf", "a") as hosts:
            hosts.write("host all all 127.0.0.0/8 trust\n")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        options = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={directory}", "-c", "fsync=off"]
        server = subprocess.Popen([*as_user, "postgres", "-D", data, "-p", port, *options], **quiet)
        ready = ["pg_isready", "-q", "-h", directory, "-p", port]
        while subprocess.run(ready, **quiet).returncode:
            time.sleep(0.05)
        queries = [part for _ in range(count) for part in ("-c", query)]
        psql = ["psql", "-h", "127.0.0.1", "-p", port, "-U", "test", "-d", "postgres", "-X", "-q"]
        for some in [queries] if is_kept else [["-c", query]] * count:
            subprocess.run([*psql, *some], check=True, **quiet)
        server.send_signal(signal.SIGINT)
        server.wait()


def postgres_think(_, is_faulty):
    postgres("select pg_sleep(0.3)" if is_faulty else "select 1")


def postgres_per_query(_, is_faulty):
    postgres("select 1", is_kept=not is_faulty, count=6)


def mosquitto_nagle(_, is_faulty):
    """The broker writes a message and an acknowledgement apart, with Nagle's algorithm: its default."""
    with tempfile.TemporaryDirectory() as directory, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        with open(directory + "/conf", "w") as configuration:
            configuration.write(
                f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay {str(not is_faulty).lower()}\n"
            )
        process = subprocess.Popen(["mosquitto", "-c", configuration.name], stderr=subprocess.DEVNULL)
        await_listener(port)
        connection = socket.create_connection(("127.0.0.1", port))
        channel.tune(connection, True)

        def packet(kind, *parts):
            body = b"".join(parts)
            connection.sendall(bytes((kind, len(body))) + body)

        packet(0x10, b"\0\4MQTT\4\2\0\x3c\0\4test")
        connection.recv(4)
        packet(0x82, b"\0\1\0\1t\0")
        connection.recv(5)
        for number in range(2, 12):
            packet(0x32, b"\0\1t", bytes((0, number)), b"m" * 60)
            # The message, and the acknowledgement of its publication: 65 and 4 bytes.
            received = 0
            while received < 69:
                received += len(connection.recv(4096))
        connection.close()
        process.kill()
        process.wait()


def warm_up(transport, _):
    """Healthy: a server that takes long for its first response, once."""
    pauses = [0.4]

    def respond_warm(speaker, connection):
        time.sleep(pauses.pop() if pauses else 0)
        respond(speaker, connection)

    visit(transport, server(transport, always(respond_warm)), 10)


def polls(transport, _):
    """Healthy: the server holds each GET until nothing has happened for a while: 204, or an empty list at the end of a timer, or
    any response when the wait that the request names is over; or an event has happened."""
    polls = [
        (b"/poll", 1.2, b"204 No Content\r\n\r\n"),
        (b"/poll", 1.5, b"200 OK\r\nContent-Length: 2\r\n\r\n[]"),
        (b"/poll?since=3", 0.6, b"200 OK\r\nContent-Length: 12\r\n\r\n{\"event\": 4}"),
        (b"/sync?since=7&timeout=1200", 1.2, b"200 OK\r\nContent-Length: 12\r\n\r\n{\"next\": 8}\n"),
    ]

    def hold(speaker, connection):
        for _, pause, response in polls * 2:
            speaker.message()
            time.sleep(pause)
            connection.sendall(b"HTTP/1.1 " + response)

    speaker, connection = client(transport, server(transport, hold))
    for target, _, _ in polls * 2:
        connection.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        speaker.message()
    connection.close()


NODE = """
const [way, transport] = process.argv.slice(1), fs = require('fs'), env = process.env
const keys = {key: fs.readFileSync(env.FAULTS_KEY), cert: fs.readFileSync(env.FAULTS_CERT)}
const handler = (request, response) => setTimeout(() => response.end('x'.repeat(600)), way == 'faulty' ? 300 : 0)
const kinds = {clear: ['http'], tls12: ['https', {maxVersion: 'TLSv1.2'}], tls13: ['https', {minVersion: 'TLSv1.3'}],
  h2c: ['http2'], h2: ['http2', {}]}
const [kind, options] = kinds[transport]
const server = kind == 'http2' && options ? require('http2').createSecureServer({...keys}, handler)
  : kind == 'https' ? require('https').createServer({...keys, ...options}, handler) : require(kind).createServer(handler)
server.listen(0, '127.0.0.1', async () => {
  const base = `${options ? 'https' : 'http'}://127.0.0.1:${server.address().port}`
  if (kind == 'http2') {
    const session = require('http2').connect(base, {rejectUnauthorized: false})
    for (let n = 0; n < 5; n++)
      await new Promise(done => { const s = session.request({':path': '/', 'user-agent': 'test'}); s.resume(); s.on('end', done) })
    session.close()
  } else {
    const http = require(kind), agent = new http.Agent({keepAlive: true, maxSockets: 1})
    for (let n = 0; n < 5; n++)
      await new Promise(done => http.get(base, {agent, rejectUnauthorized: false}, r => { r.resume(); r.on('end', done) }))
  }
  process.exit(0)
})
"""


def node_think(transport, is_faulty):
    subprocess.run(["node", "-e", NODE, "--", "faulty" if is_faulty else "healthy", transport], check=True)


FAULTS = {
    "refused": refused,
    "reset": reset,
    "backlog": backlog,
    "alert": alert,
    "events": events,
    "updates": updates,
    "pushes": pushes,
    "late-messages": late_messages,
    "late-replies": late_replies,
    "greeting": greeting,
    "heartbeats": heartbeats,
    "short-messages": short_messages,
    "expect": expects,
    "proxy": proxy,
    "quic-unanswered": datagrams,
    "mosquitto-nagle": mosquitto_nagle,
    "redis-think": redis_think,
    "redis-blocks": redis_blocks,
    "redis-per-command": redis_per_command,
    "postgres-think": postgres_think,
    "postgres-per-query": postgres_per_query,
    "node-think": node_think,
    "warm-up": warm_up,
    "polls": polls,
}
