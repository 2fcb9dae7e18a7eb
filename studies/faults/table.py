"""Faults by transport, each with the first cause that is right. A healthy twin must be silent, with exit status 0.

The cause is what the program does, not what packets look like. Where only payload could tell, another cause is right, too:
the exceptions are here, by transport.
"""

from dataclasses import dataclass, field

ALL = ("clear", "tls12", "tls13", "h2c", "h2")
TLS = ("tls12", "tls13", "h2")
HTTP1 = ("clear", "tls12", "tls13")


@dataclass
class Case:
    """A fault, the causes that may come first, the network (None: loopback), and where it exists."""

    fault: str
    first: str
    network: str | None = None
    transports: tuple = ALL
    except_for: dict = field(default_factory=dict)  # transport: causes
    filter: str | None = None  # of nft, on the input of loopback
    needs: tuple = ()  # programs
    has_healthy: bool = True
    has_faulty: bool = True


NAGLE = "nagle-delayed-ack nagle"
WINDOW = "receive-window-limited zero-window"
LOSS = "retransmission-timeout tail-loss-probe fast-retransmit syn-unanswered"



def relayed(relay):
    """Faults behind a relay. curl 7.88 ends after one request over HTTP/2 in the clear."""
    common = {"transports": (*HTTP1, "h2"), "needs": (relay, "curl")}
    return [
        Case(f"{relay}-think", "server-think", **common),
        Case(f"{relay}-stalls", "server-think", **common),
        Case(f"{relay}-closes", "connection-per-request", "cable", HTTP1, needs=common["needs"]),
        # The client waits for the relay's connections: on its own it shows that as the relay's time.
        Case(f"{relay}-upstream", "connection-per-request server-think", "cable", **common),
        Case(f"{relay}-truncates", "reset-mid-transfer", **common),
        Case(f"{relay}-refused", "connection-refused", **common),
    ]


CASES = [
    Case("nagle-server", NAGLE),
    Case("nagle-client", NAGLE),
    Case("nagle-both", NAGLE),
    Case("think", "server-think"),
    Case("think-posts", "server-think"),
    Case("think-over-path", "server-think", "cable"),
    Case("first-byte", "server-think"),
    # A server of HTTP/2 may push; whether it was within a response shows in the clear alone.
    Case("stall-within", "server-think", except_for={"h2": "server-think nothing"}),
    Case("cork", "server-think"),
    Case("send-buffer", "send-buffer-limited", "cable"),
    Case("receive-window", WINDOW, "cable"),
    Case("receive-window-upload", WINDOW, "cable"),
    Case("slow-reader", WINDOW),
    Case("slow-reader-upload", WINDOW),
    Case("per-request-closed", "connection-per-request", "cable"),
    Case("per-request-left", "connection-per-request", "cable"),
    Case("idle-restart", "slow-start-restart", "4g"),
    Case("hello-retry", "tls-hello-retry", "cable", ("tls13", "h2")),
    Case("certificates", "tls-certificate-flight", "cable", TLS),
    Case("handshake-stall", "client-think", None, TLS),
    Case("http2-window", "http2-flow-control", "cable", ("h2c", "h2")),
    Case("loss", LOSS, filter="numgen random mod 100 < 6 drop", has_healthy=False),
    Case("refused", "connection-refused"),
    # A server that resets leaves its request without a whole response: in the clear both are seen.
    Case("reset", "reset-mid-transfer", except_for=dict.fromkeys(("clear", "h2c"), "reset-mid-transfer reset-lost-data")),
    Case("backlog", "syn-unanswered", transports=HTTP1),
    Case("alert", "tls-alert", transports=TLS),
    Case("events", "nothing", has_faulty=False),
    Case("updates", "nothing", transports=("h2c",), has_faulty=False),
    Case("pushes", "nothing", transports=HTTP1, has_faulty=False),
    Case("late-messages", "server-think", transports=HTTP1),
    Case("late-replies", "server-think", transports=("tls12", "tls13")),
    Case("short-messages", "server-think", transports=HTTP1),
    Case("greeting", "server-think", transports=HTTP1),
    Case("heartbeats", "nothing", transports=("tls12", "tls13"), has_faulty=False),
    # The sender fills the queue of the link: its losses are the signal to slow down.
    Case("bulk", "nothing", "dsl", HTTP1, has_faulty=False),
    Case("syn-dropped", LOSS, filter="tcp flags syn / syn,ack limit rate 1/hour burst 1 packets drop"),
    Case("expect", "expect-100-continue", "cable", HTTP1, dict.fromkeys(("tls12", "tls13"), "expect-100-continue nothing")),
    Case("proxy", NAGLE),
    Case("quic-unanswered", "quic-unanswered", transports=("clear",)),
    Case("redis-think", "server-think", transports=("clear",), needs=("redis-server",)),
    Case("redis-blocks", "nothing", transports=("clear",), needs=("redis-server",), has_faulty=False),
    Case("redis-per-command", "connection-per-request", "cable", ("clear",), needs=("redis-server",)),
    Case("mosquitto-nagle", NAGLE, transports=("clear",), needs=("mosquitto",)),
    Case("postgres-think", "server-think", transports=("clear",), needs=("postgres", "initdb", "psql")),
    Case("postgres-per-query", "connection-per-request", "cable", ("clear",), needs=("postgres", "initdb", "psql")),
    Case("node-think", "server-think", needs=("node",)),
    # Go offers no use of session tickets, encrypts the alert of TLS 1.3, and leaves connections open.
    Case("go-think", "server-think", needs=("go",)),
    Case("go-stall-within", "server-think", needs=("go",)),
    Case("go-per-request", "connection-per-request", "cable", needs=("go",)),
    Case("go-rejects", "tls-alert", transports=TLS, needs=("go",)),
    Case("go-window", "http2-flow-control", "4g", ("h2c", "h2"), needs=("go",)),
    Case("go-window-upload", "http2-flow-control", "4g", ("h2c", "h2"), needs=("go",)),
    Case("c-nagle", NAGLE, transports=("clear",), needs=("gcc",)),
    Case("c-think", "server-think", transports=("clear",), needs=("gcc",)),
    Case("c-per-request", "connection-per-request", "cable", ("clear",), needs=("gcc",)),
    Case("c-send-buffer", "send-buffer-limited", "cable", ("clear",), needs=("gcc",)),
    Case("c-receive-window", WINDOW, "cable", ("clear",), needs=("gcc",)),
    Case("c-slow-reader", WINDOW, transports=("clear",), needs=("gcc",)),
    Case("java-think", "server-think", transports=HTTP1, needs=("java", "javac")),
    # In the clear the server's first response, while it loads its classes, takes longer than all set-ups.
    Case("java-per-request", "connection-per-request", "cable", ("tls12", "tls13"), needs=("java", "javac")),
    Case("java-nagle", NAGLE, transports=HTTP1, needs=("java", "javac")),
    *relayed("nginx"),
    *relayed("haproxy"),
    # The first response takes long once, as that of a program that compiles its code.
    Case("warm-up", "nothing", has_faulty=False),
    Case("polls", "nothing", transports=("clear",), has_faulty=False),
]
