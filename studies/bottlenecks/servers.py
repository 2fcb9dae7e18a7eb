"""Servers with one known bottleneck each, for `run.py`; Python's standard library alone.

    python3 servers.py NAME PORT
"""

import os
import selectors
import socket
import sys
import threading
import time

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


def read_request(connection):
    """Reads a request without a body; False at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(4096)
        if not part:
            return False
        data += part
    return True


def listen(port, backlog=1024, wait=0):
    time.sleep(wait)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1" if len(sys.argv) < 4 else sys.argv[3], port))
    listener.listen(backlog)
    return listener


def threaded(port, respond, nodelay=True, limit=None):
    """A thread for each connection; `limit` of them at a time, others wait in the accept queue."""
    listener = listen(port)
    slots = threading.Semaphore(limit or 1_000_000)

    def serve(connection):
        with connection:
            try:
                while read_request(connection):
                    respond(connection)
            except OSError:
                pass
        slots.release()

    while True:
        slots.acquire()
        connection, _ = listener.accept()
        if nodelay:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


def send(connection, body=b"hello"):
    connection.sendall(RESPONSE % len(body) + body)


def busy(milliseconds):
    until = time.thread_time() + milliseconds / 1e3
    while time.thread_time() < until:
        pass


def one_core(port):
    """One thread for all connections, with 2 ms of CPU for each response."""
    listener = listen(port)
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ready.register(connection, selectors.EVENT_READ)
                continue
            try:
                alive = read_request(key.fileobj)
                if alive:
                    busy(2)
                    send(key.fileobj)
            except OSError:
                alive = False
            if not alive:
                ready.unregister(key.fileobj)
                key.fileobj.close()


def nagle(port):
    """Header section and body in two small writes, without TCP_NODELAY."""

    def respond(connection):
        connection.sendall(RESPONSE % 5)
        connection.sendall(b"hello")

    threaded(port, respond, nodelay=False)


def sleep(port):
    """A sleep of 40 ms before each response, concurrent."""

    def respond(connection):
        time.sleep(0.04)
        send(connection)

    threaded(port, respond)


def database(port):
    """A database of one connection: 10 ms for each response, one at a time."""
    pool = threading.Lock()

    def respond(connection):
        with pool:
            time.sleep(0.01)
        send(connection)

    threaded(port, respond)


def connection_limit(port):
    """Four connections at a time; the others are never served."""
    threaded(port, send, limit=4)


def accept_queue(port):
    """A backlog of 2, and 20 ms before each accept: SYNs are dropped."""
    listener = listen(port, backlog=2)
    while True:
        time.sleep(0.02)
        connection, _ = listener.accept()
        connection.settimeout(0.2)
        try:
            if read_request(connection):
                send(connection)
        except OSError:
            pass
        connection.close()


def fast(port):
    """A small response at once."""
    threaded(port, send)


def large(port):
    """A response of 100 kB at once."""
    body = b"x" * 100_000
    threaded(port, lambda connection: send(connection, body))


def hog(_port):
    """Uses every CPU with real-time priority where that is permitted, else four processes for each CPU."""
    for _ in range(os.cpu_count() * 4 - 1):
        if os.fork() == 0:
            break
    try:
        os.nice(-20)
    except OSError:
        pass
    while True:
        pass


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]))
