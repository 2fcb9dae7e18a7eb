"""A server over http.server whose delays are in the request: /r?size=&think=&late=&at=&reset=&event=.

think   milliseconds before the response
late    milliseconds of silence in the middle of the response, after `at` bytes of the body
reset   the connection is reset after so many bytes of the body
chunks  pieces of the response with `every` milliseconds between them (server-sent events)

Each delay is logged as `NAME START_US END_US`.
"""
import argparse, http.server, socket, socketserver, ssl, struct, time
from urllib.parse import parse_qsl, urlsplit

ARGS = None


def wait(name, ms):
    start = time.time_ns() // 1000
    time.sleep(ms / 1000)
    with open(ARGS.log, "a") as log:
        log.write(f"{name} {start} {time.time_ns() // 1000}\n")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        if ARGS.sndbuf:
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ARGS.sndbuf)
        if ARGS.nodelay:
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not ARGS.split:
            self.wbufsize = -1
        super().setup()

    def do_GET(self):
        q = {k: int(v) for k, v in parse_qsl(urlsplit(self.path).query)}
        if q.get("unread"):  # closes without reading: the kernel resets
            self.close_connection = True
            wait("late", 30)
            return
        length = int(self.headers.get("Content-Length", 0))
        while length > 0:
            length -= len(self.rfile.read(min(length, 65536)))
        if "think" in q:
            wait("think", q["think"])
        size = q.get("size", 500)
        self.send_response(200)
        self.send_header("Content-Length", str(size * q.get("chunks", 1)))
        self.end_headers()
        body = b"x" * size
        if "reset" in q:
            self.wfile.write(body[: q["reset"]])
            self.wfile.flush()
            wait("before-reset", 100)
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            wait("reset", 0)
            self.request.close()
            self.close_connection = True
            return
        if "late" in q:
            at = q.get("at", size // 2)
            self.wfile.write(body[:at])
            self.wfile.flush()
            wait("late", q["late"])
            self.wfile.write(body[at:])
        elif "chunks" in q:
            for i in range(q["chunks"]):
                if i:
                    wait("every", q["every"])
                self.wfile.write(body)
                self.wfile.flush()
        elif "pieces" in q or ARGS.sndbuf:  # many small writes without a wait
            q.setdefault("pieces", 4096)
            for at in range(0, size, q["pieces"]):
                self.wfile.write(body[at : at + q["pieces"]])
                self.wfile.flush()
        else:
            self.wfile.write(body)
        self.wfile.flush()

    do_POST = do_PUT = do_GET

    def handle_expect_100(self):
        if ARGS.no_continue:
            return True
        return super().handle_expect_100()

    def log_message(self, *a):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

    def shutdown_request(self, request):
        try:
            super().shutdown_request(request)
        except OSError:
            pass

    def handle_error(self, *a):
        pass


def main():
    global ARGS
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, default=8000)
    p.add_argument("--log", required=True)
    p.add_argument("--split", action="store_true", help="head and body in two writes, as http.server does by default")
    p.add_argument("--nodelay", action="store_true")
    p.add_argument("--sndbuf", type=int, default=0)
    p.add_argument("--tls", nargs=2, metavar=("CERT", "KEY"))
    p.add_argument("--never-accept", type=int, default=0, metavar="BACKLOG")
    p.add_argument("--no-continue", action="store_true", help="ignores Expect: 100-continue")
    ARGS = p.parse_args()
    if ARGS.never_accept:
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("0.0.0.0", ARGS.port))
        s.listen(ARGS.never_accept)
        time.sleep(60)
        return
    server = Server(("0.0.0.0", ARGS.port), Handler)
    if ARGS.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*ARGS.tls)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


main()
