"""A client over a plain socket that runs a script of operations, and logs when each delay began and ended.

connect               opens a connection
rcvbuf N              before connect: SO_RCVBUF
nagle on|off          after connect: TCP_NODELAY (off by default, that is Nagle on)
quickack on|off       sets TCP_QUICKACK before each later request
get QUERY             sends GET /r?QUERY with one write, and reads the response to its end
ask QUERY             sends it and does not read
post SIZE QUERY       sends head and body with one write
split SIZE QUERY      sends head and body with two writes
splitsleep MS SIZE QUERY  with MS between them
read N MS SLEEP       reads the response N bytes at a time, with MS between reads
finish                reads one response
sleep MS              client think time
raw N                 sends N bytes without a head and does not read
close | reset
"""
import socket, ssl, struct, sys, time

HOST, PORT, LOG, TLS = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] == "tls"
sock = buffer = None
rcvbuf = 0
quickack = None


def log(name, start):
    with open(LOG, "a") as f:
        f.write(f"{name} {start} {now()}\n")


def now():
    return time.time_ns() // 1000


def head(method, query, length=None):
    extra = f"Content-Length: {length}\r\n" if length is not None else ""
    return f"{method} /r?{query} HTTP/1.1\r\nHost: h\r\n{extra}\r\n".encode()


def acknowledge():
    if quickack is not None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, quickack)


def response(step=65536, ms=0):
    global buffer
    while b"\r\n\r\n" not in buffer:
        got = sock.recv(step)
        acknowledge()
        if not got:
            raise EOFError
        buffer += got
    top, _, rest = buffer.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in top.split(b"\r\n") if line.lower().startswith(b"content-length")]
    left = lengths[0] - len(rest)
    buffer = rest[lengths[0]:] if left < 0 else b""
    while left > 0:
        if ms:
            start = now()
            time.sleep(ms / 1000)
            log("slow-read", start)
        got = sock.recv(min(step, left))
        acknowledge()
        if not got:
            raise EOFError
        left -= len(got)


def run(line):
    global sock, buffer, rcvbuf, quickack
    op, *args = line.split()
    start = now()
    if op == "connect":
        s = socket.socket()
        if rcvbuf:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        s.settimeout(60)
        s.connect((HOST, PORT))
        log("connect", start)
        if TLS:
            context = ssl._create_unverified_context()
            s = context.wrap_socket(s)
            log("tls", start)
        sock, buffer = s, b""
    elif op == "rcvbuf":
        rcvbuf = int(args[0])
    elif op == "nagle":
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, args[0] == "off")
    elif op == "quickack":
        quickack = int(args[0] == "on")
        acknowledge()
    elif op in ("get", "ask"):
        acknowledge()
        sock.sendall(head("GET", args[0]))
        if op == "get":
            response()
            log("get", start)
    elif op == "post":
        sock.sendall(head("POST", args[1], int(args[0])) + b"y" * int(args[0]))
        response()
        log("post", start)
    elif op in ("split", "splitsleep"):
        ms = int(args.pop(0)) if op == "splitsleep" else 0
        sock.sendall(head("POST", args[1], int(args[0])))
        if ms:
            begin = now()
            time.sleep(ms / 1000)
            log("client-pause", begin)
        log("second-write", now())
        sock.sendall(b"y" * int(args[0]))
        response()
        log("split", start)
    elif op == "read":
        response(int(args[0]), int(args[1]))
        log("read", start)
    elif op == "finish":
        response()
        log("finish", start)
    elif op == "sleep":
        time.sleep(int(args[0]) / 1000)
        log("sleep", start)
    elif op == "raw":
        sock.sendall(b"z" * int(args[0]))
    elif op == "close":
        sock.close()
    elif op == "reset":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        log("reset", start)
        sock.close()


for line in sys.argv[5].split(";"):
    try:
        run(line.strip())
    except (OSError, EOFError) as e:
        print(line, repr(e))
        break
