"""A server and its client in one process: prints the milliseconds of a connection and of an exchange, and the bytes per second
of the last two thirds of a long response."""

import socket
import sys
import threading
import time

SIZE = int(sys.argv[1])


def serve(listener):
    connection, _ = listener.accept()
    connection.recv(100)
    connection.sendall(b"x")
    connection.recv(100)
    connection.sendall(bytes(SIZE))
    connection.recv(100)


listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, args=(listener,), daemon=True).start()
client = socket.socket()
begin = time.perf_counter()
client.connect(listener.getsockname())
connected = time.perf_counter()
client.sendall(b"short")
client.recv(1)
exchanged = time.perf_counter()
client.sendall(b"long")
received, late = 0, None
while received < SIZE:
    received += len(client.recv(65536))
    if late is None and received > SIZE / 3:
        late = time.perf_counter(), received
end = time.perf_counter()
client.close()
print(1e3 * (connected - begin), 1e3 * (exchanged - connected), (received - late[1]) / (end - late[0]))
