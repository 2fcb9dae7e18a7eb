"""A server and its client in one process: small requests over one connection on loopback.

With `apart` the server writes headers and body in two calls with Nagle's algorithm on; with `whole` in one.
Arguments: apart or whole, number of requests, exit status.
"""

import socket
import sys
import threading

HEADERS, BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n", b"x" * 600


def serve(listener, way):
    connection, _ = listener.accept()
    while connection.recv(4096):
        if way == "apart":
            connection.sendall(HEADERS)
            connection.sendall(BODY)
        else:
            connection.sendall(HEADERS + BODY)


def fetch(connection):
    connection.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    length = 0
    while length < len(HEADERS) + len(BODY):
        length += len(connection.recv(4096))


way, requests, status = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, args=(listener, way), daemon=True).start()
connection = socket.create_connection(listener.getsockname())
for _ in range(requests):
    fetch(connection)
sys.exit(status)
