"""The conversations and what is true of each, decided before it runs.

A truth has `causes` (each is right), the `interval` in which they are, `expect` (whether a diagnosis must have one of them),
the capture `points` at which it is expected (c, m, s), and `why`. Intervals:

run            the whole run
open           from the first packet of a connection to the first data after its handshakes
client:NAME    while the client's program was in that delay, by its log; server:NAME the same
drop           from each packet that the path dropped until a copy passed it
drop+          from the first dropped packet to the end
kernel:FIELD   the run, if the sender's kernel counted at least 5 ms in TCP_INFO's FIELD
kernel:zero    the run, if a kernel counted a window of zero that it offered
capture        the run, if one of the three tcpdumps reports that it dropped packets
queue          while packets waited 5 ms or more in the path's queue
"""
import copy

RUNS = []
WAIT = ["server-think"]
LOSS = ["fast-retransmit", "tail-loss-probe", "retransmission-timeout"]
HTTPS = ("nginx", "apache", "py", "node", "go", "haproxy")


def T(causes, interval="run", expect=True, points="cms", why=""):
    return {"causes": causes.split() if isinstance(causes, str) else causes, "interval": interval, "expect": expect, "points": points, "why": why}


def R(name, server, client, *truth, rtt=0, path=None, net=None, **rest):
    path = {"rtt_ms": rtt, **(path or {})}
    truth = list(truth)

    def also(causes, interval, why):
        truth.append(T(causes, interval, False, "", why))

    if rtt >= 5 or path.get("jitter_us"):
        also("connection-setup", "open", "a handshake takes a round trip")
        also("path-latency", "run", "the path has a round trip of 5 ms or more")
    if rest.get("tls"):
        also("tls-handshake", "open", "TLS takes round trips, and the server computes")
        if "requests_client" in client:
            also("client-think", "open", "Python loads its certificates when the connection is open")
    if "rcvbuf" in client:
        also("delayed-ack", "run", "a window of few segments ends with one whose acknowledgement is delayed")
    if server == "redis" and "redis-cli" in client:
        rest["bulk"] = True  # redis-cli first loads 170 kB, the documentation of all commands
    if rest.get("bulk"):
        also("slow-start", "run", "a transfer of more than ten segments over a new connection")
        if not rtt or path.get("rate"):
            also("bandwidth-limited", "run", "nothing but the path's rate limits it")
    if path.get("rate"):
        also("bottleneck-queue bandwidth-limited", "queue", "the path's queue delays packets")
    also("receive-window-limited zero-window", "kernel:rwnd_limited", "the sender's kernel counts it")
    also("capture-loss", "capture", "tcpdump says that it dropped packets")
    also("zero-window", "kernel:zero", "the receiver's kernel counts it")
    also("send-buffer-limited", "kernel:sndbuf_limited", "the sender's kernel counts it")
    if any(k.startswith("loss") for k in path) or any(k in path for k in ("drop", "queue", "mtu")):
        also("congestion-window", "drop+", "losses reduce the window")
        also("delayed-ack", "drop+", "a single segment of a reduced window is acknowledged late")
    if rest.get("limit"):
        also("reset-mid-transfer", "run", "the client is ended before the response is complete")
    RUNS.append({"name": name, "server": server, "client": client, "path": path, "net": net or {}, "truth": truth, **rest})


def curl(*paths, flags=""):
    return f"curl -sk --noproxy '*' {flags} " + " ".join(f"-o /dev/null '{{url}}{p}'" for p in paths)


def script(text):
    return f"python3 {{programs}}/client.py 10.9.0.2 {{port}} {{clog}} {{tls}} '{text}'"


def requests(*items, library="requests"):
    return f"python3 {{programs}}/requests_client.py {library} {{clog}} " + " ".join(f"'{i if i.startswith('sleep') else i.replace('/', '{url}/', 1)}'" for i in items)


def go(*paths):
    return "{programs}/goserver.bin get " + " ".join(f"'{{url}}{p}'" for p in paths)


def wget(*paths):
    return "wget -q --no-check-certificate --no-proxy -O /dev/null " + " ".join(f"'{{url}}{p}'" for p in paths)


# Healthy exchanges: nothing but notes.
def healthy():
    static = ("/500.bin", "/20000.bin", "/500.bin")
    dynamic = ("/r?size=400", "/r?size=9000", "/r?size=400")
    n = 0
    for server in ("nginx", "apache", "lighttpd", "py", "node", "go", "haproxy"):
        paths = static if server in ("nginx", "apache", "lighttpd") else dynamic
        for rtt in (0, 20, 100, 300):
            n += 1
            tls = server in HTTPS and n % 2 == 0
            client = (curl, wget, go, requests)[(n + n // 4) % 4]
            truth = []
            if client is wget and tls:
                truth = [T("nagle nagle-delayed-ack", "open", False, "", "wget leaves Nagle on: its request waits for the ACK of its Finished")]
            R(f"healthy-{server}-{client.__name__}-{rtt}{'-tls' if tls else ''}", server, client(*paths), *truth, rtt=rtt, tls=tls,
              server_args=["--nodelay"] if server == "py" else [], bulk=rtt and paths is static, net={"cc": ("bbr", "cubic", "reno")[n % 3], "offload": n % 4 == 1})
    for rtt, cc in ((0, "cubic"), (20, "cubic"), (100, "cubic"), (100, "bbr"), (300, "reno"), (20, "bbr")):
        R(f"bulk-{cc}-{rtt}", "nginx", curl("/1000000.bin" if rtt < 100 else "/200000.bin"), T("slow-start", "run", rtt >= 20), rtt=rtt, bulk=True, net={"cc": cc, "offload": rtt == 20})
    for rtt in (0, 20, 100):
        R(f"upload-{rtt}", "py", script("connect;nagle off;post 300000 size=300"), T("slow-start", "run", rtt >= 20), rtt=rtt, bulk=True, net={"cc": "cubic"}, server_args=["--nodelay"])
        R(f"aiohttp-{rtt}", "go", requests("/r?size=500", "/r?size=3000", "/r?size=500", library="aiohttp"), rtt=rtt)
    for rtt in (0, 100):
        R(f"idle-close-{rtt}", "nginx", script("connect;nagle off;ask size=500;sleep 2600"), T("client-think", "client:sleep", False, "", "the client sleeps"), rtt=rtt, keepalive="1s", nginx="error_page 404 /500.bin;")
        R(f"idle-close-node-{rtt}", "node", script("connect;nagle off;get size=500;sleep 2600"), T("client-think", "client:sleep", False, "", "the client sleeps"), rtt=rtt)
        R(f"jitter-{rtt}", "nginx", curl("/20000.bin", "/500.bin", "/20000.bin", "/500.bin"), rtt=rtt, bulk=True, path={"jitter_us": 30000})


def think():
    n = 0
    for server, client in (("py", curl), ("node", requests), ("go", wget), ("java", curl), ("nginx", requests), ("haproxy", go), ("py", script), ("node", go), ("go", curl)):
        for rtt, ms in ((0, 60), (20, 150), (100, 300), (300, 800)):
            n += 1
            tls = server in HTTPS and n % 3 == 0
            if client is script:
                c = script(f"connect;nagle off;get size=400;get size=700&think={ms};get size=400")
            else:
                c = client("/r?size=400", f"/r?size=700&think={ms}", "/r?size=400")
            truth = [T("server-think", "server:think", True, "cms", "the server sleeps before the response")]
            if client is wget and tls:
                truth.append(T("nagle nagle-delayed-ack", "open", False, "", "wget leaves Nagle on"))
            args = {"py": ["--nodelay"], "java": ["-Dsun.net.httpserver.nodelay=true"]}.get(server, [])
            R(f"think-{server}-{client.__name__}-{rtt}-{ms}{'-tls' if tls else ''}", server, c, *truth, rtt=rtt, tls=tls, server_args=args,
              net={"cc": ("cubic", "bbr")[n % 2], "offload": n % 5 == 0}, snap=96 if n % 7 == 0 else 0)
    for server, client in (("py", curl), ("node", curl), ("go", requests), ("java", wget), ("nginx", curl)):
        for rtt, ms in ((0, 200), (100, 400)):
            tls = server == "go"
            args = {"py": ["--nodelay"], "java": ["-Dsun.net.httpserver.nodelay=true"]}.get(server, [])
            R(f"late-{server}-{rtt}", server, client("/r?size=400", f"/r?size=5000&at=1000&late={ms}", "/r?size=400"), T("server-think", "server:late", True, "cms", "the server sleeps in the middle of the response"),
              rtt=rtt, tls=tls, server_args=args, buffering="off")
    for rtt in (0, 20, 100):
        R(f"late-bulk-{rtt}", "py", curl("/r?size=90000&at=45000&late=350"), T("server-think", "server:late", True, "cms", "the server sleeps in the middle of the response"), rtt=rtt, bulk=True, server_args=["--nodelay"], net={"cc": "cubic"})
        R(f"throttle-{rtt}", "nginx", curl("/200000.bin"), T("server-think send-buffer-limited", "run", False, "", "nginx's limit_rate pauses between its writes"), rtt=rtt, bulk=True, nginx="limit_rate 200k;", net={"cc": "cubic"})
        R(f"events-{rtt}", "py", curl("/r?size=60&chunks=5&every=300"), T("server-think", "server:every", False, "", "a stream of events: the server writes late, by design"), rtt=rtt, server_args=["--nodelay"])
        R(f"client-think-{rtt}", "nginx", requests("/500.bin", "sleep=300", "/20000.bin", "sleep=700", "/500.bin"), T("client-think", "client:sleep", True, "cms", "the client sleeps"), rtt=rtt, bulk=rtt, tls=rtt == 20)
        R(f"client-think-script-{rtt}", "go", script("connect;get size=400;sleep 250;get size=2000;sleep 1500;get size=400"), T("client-think", "client:sleep", True, "cms", "the client sleeps"), rtt=rtt)
        R(f"slow-post-{rtt}", "py", script("connect;nagle off;splitsleep 300 400 size=300;get size=300"), T("client-think", "client:client-pause", False, "", "the client sleeps in the middle of its request"), rtt=rtt, server_args=["--nodelay"])


def services():
    cli = "redis-cli -h 10.9.0.2 "
    for rtt in (0, 20, 100):
        R(f"redis-get-{rtt}", "redis", f"printf 'SET a 1\\nGET a\\nINCR n\\nGET n\\n' | {cli}", rtt=rtt)
        R(f"redis-sleep-{rtt}", "redis", f"printf 'SET a 1\\nDEBUG SLEEP 0.3\\nGET a\\n' | {cli}", T("server-think", "run", True, "cms", "the server sleeps for 300 ms"), rtt=rtt)
        R(f"redis-push-{rtt}", "redis", f"({cli} SUBSCRIBE ch > /dev/null & p=$!; sleep 0.3; for i in 1 2 3; do {cli} PUBLISH ch hello; sleep 0.4; done; kill $p)",
          T("connection-per-request", "run", False, "", "three redis-cli after one another"), rtt=rtt)
        R(f"redis-pipe-{rtt}", "redis", "python3 -c \"import redis; r = redis.Redis(host='10.9.0.2'); p = r.pipeline(transaction=False); [p.set(f'k{i}', 'v' * 100) for i in range(50)]; p.execute(); [r.get(f'k{i}') for i in range(5)]\"", rtt=rtt)
        sql = "psql -h 10.9.0.2 -U postgres -Xqc "
        R(f"postgres-{rtt}", "postgres", f"{sql} 'select 1' -c 'select 2' -c 'select 3' > /dev/null", T("server-think", "open", False, "", "the server forks a process"), rtt=rtt)
        R(f"postgres-sleep-{rtt}", "postgres", f"{sql} 'select 1' -c 'select pg_sleep(0.25)' -c 'select 2' > /dev/null", T("server-think", "run", True, "cms", "the query sleeps for 250 ms"), rtt=rtt)
        ssh = "ssh -q -i {fixtures}/user_key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes root@10.9.0.2 "
        R(f"ssh-{rtt}", "ssh", f"{ssh} 'sleep 0.4; echo done'", T("server-think", "run", False, "", "the command sleeps; the server computes keys and starts a shell"),
          T("nagle nagle-delayed-ack", "run", False, "", "ssh and sshd leave Nagle on until a terminal is wanted"), T("client-think", "run", False, "", "the client computes keys"), rtt=rtt)


def nagle():
    slow_ack = script("connect;quickack off;nagle off;get size=400;get size=500;get size=700;get size=400")
    for rtt in (0, 20, 100):
        R(f"split-response-{rtt}", "py", slow_ack, T("nagle-delayed-ack" + (" nagle" if rtt else ""), "run", True, "cms", "http.server writes head and body separately with Nagle on; the client delays ACKs"), rtt=rtt, server_args=["--split"])
        R(f"split-response-requests-{rtt}", "py", requests("/r?size=400", "/r?size=500", "/r?size=700", "/r?size=400"), T("nagle-delayed-ack nagle", "run", rtt > 0, "cms", "http.server writes head and body separately with Nagle on"), rtt=rtt, server_args=["--split"])
        R(f"split-response-curl-{rtt}", "py", curl("/r?size=400", "/r?size=500", "/r?size=700"), T("nagle-delayed-ack nagle", "run", rtt > 0, "cms", "http.server writes head and body separately with Nagle on"), rtt=rtt, server_args=["--split"], net={"offload": True})
        R(f"split-nodelay-{rtt}", "py", slow_ack, rtt=rtt, server_args=["--split", "--nodelay"])
        R(f"split-quickack-{rtt}", "py", script("connect;nagle off;get size=400;get size=500;get size=700"), T("nagle", "run", rtt > 0, "cms", "the client acknowledges at once"), rtt=rtt, server_args=["--split"], net={"route_c": "quickack 1"})
        R(f"java-default-{rtt}", "java", curl("/r?size=400", "/r?size=500", "/r?size=400"), T("nagle-delayed-ack nagle", "run", False, "cms", "com.sun.net.httpserver writes the head separately, with Nagle on"), rtt=rtt)
        R(f"split-request-{rtt}", "go", script("connect;nagle on;split 400 size=300;split 400 size=300;split 400 size=300"), T("nagle-delayed-ack nagle", "run", True, "cms", "the client writes head and body separately with Nagle on; the server has nothing to send until it has both"), rtt=rtt)
        R(f"split-request-nodelay-{rtt}", "go", script("connect;nagle off;split 400 size=300;split 400 size=300;split 400 size=300"), rtt=rtt)
        R(f"pieces-{rtt}", "py", script("connect;quickack off;nagle off;get size=900&pieces=300;get size=900&pieces=300;get size=900&pieces=300"), T("nagle-delayed-ack nagle", "run", True, "cms", "the body in three writes with Nagle on"), rtt=rtt, server_args=["--split"])
        R(f"tls-nagle-{rtt}", "go", script("connect;get size=400;get size=400"), T("nagle nagle-delayed-ack", "run", False, "", "the client's request may wait for the ACK of its Finished"), rtt=rtt, tls=True)
    for rtt in (20, 100):
        R(f"delayed-ack-window1-{rtt}", "py", script("connect;quickack off;nagle off;get size=300;get size=6000"), T("delayed-ack nagle-delayed-ack nagle short-initial-segment slow-start congestion-window", "run", False, "", "a window of one segment, and the client delays ACKs"),
          rtt=rtt, server_args=["--nodelay"], net={"cc": "cubic", "route_s": "initcwnd 1"})


def windows():
    for rtt, cc in ((0, "cubic"), (20, "bbr"), (100, "cubic")):
        R(f"slow-reader-{rtt}", "nginx", script("rcvbuf 8000;connect;ask slow;read 3000 60"),
          T("zero-window receive-window-limited", "run", True, "cms", "SO_RCVBUF of 8000, 3000 bytes every 60 ms"), rtt=rtt, bulk=True, net={"cc": cc}, nginx="rewrite ^/r$ /200000.bin last;", limit=4)
        R(f"slow-reader-py-{rtt}", "py", script("rcvbuf 4000;connect;ask size=60000;read 2500 50"), T("zero-window receive-window-limited", "run", True, "cms", "SO_RCVBUF of 4000, 2500 bytes every 50 ms"), rtt=rtt, bulk=True, net={"cc": cc}, server_args=["--nodelay"])
        R(f"pausing-reader-{rtt}", "py", script("connect;ask size=3000000;sleep 900;finish"), T("zero-window receive-window-limited", "client:sleep", rtt == 0, "cms", "the client does not read for 900 ms"), T("client-think", "client:sleep", False, "", "the client sleeps"), rtt=rtt, bulk=True, net={"cc": cc}, server_args=["--nodelay"])
    for rtt, cc in ((20, "cubic"), (100, "bbr"), (100, "cubic"), (300, "reno")):
        R(f"small-rcvbuf-{cc}-{rtt}", "py", script("rcvbuf 12000;connect;get size=90000"), T("receive-window-limited zero-window", "run", True, "cms", "SO_RCVBUF of 12000 over a long path"), rtt=rtt, bulk=True, net={"cc": cc}, server_args=["--nodelay"])
        R(f"small-rcvbuf-tls-{cc}-{rtt}", "go", script("rcvbuf 16000;connect;nagle off;get size=120000"), T("receive-window-limited zero-window", "run", True, "cms", "SO_RCVBUF of 16000 over a long path"), rtt=rtt, bulk=True, tls=True, net={"cc": cc})
        R(f"small-sndbuf-{cc}-{rtt}", "py", curl("/r?size=120000"), T("send-buffer-limited", "run", True, "cms", "SO_SNDBUF of 10000 over a long path"), rtt=rtt, bulk=True, net={"cc": cc}, server_args=["--nodelay", "--sndbuf", "10000"])
        R(f"small-sndbuf-16k-{cc}-{rtt}", "py", requests("/r?size=150000", "/r?size=400"), T("send-buffer-limited", "run", True, "cms", "SO_SNDBUF of 16000 over a long path"), T("nagle nagle-delayed-ack", "run", False, "", "writes of 4096 bytes with Nagle on"), rtt=rtt, bulk=True, net={"cc": cc}, server_args=["--sndbuf", "16000"], tls=cc == "bbr")
    for rtt in (20, 100):
        for cc, after in (("cubic", 1), ("reno", 1), ("cubic", 0), ("bbr", 1)):
            restart = after == 1 and cc != "bbr"
            truth = [T("client-think", "client:sleep", True, "cms", "the client sleeps")]
            if restart:
                truth.append(T("slow-start-restart", "run", True, "cms", "the window of more than ten segments is reset after idling"))
            R(f"idle-{cc}-{after}-{rtt}", "py", script("connect;nagle off;get size=400000;sleep 1500;get size=120000"), *truth, rtt=rtt, bulk=True, net={"cc": cc, "sysctl": {"net.ipv4.tcp_slow_start_after_idle": after}}, server_args=["--nodelay"])


def losses():
    seen = "cm"  # the lossy segment is between the middle and the server
    for rtt in (0, 20, 100):
        for n in (1, 2):
            R(f"syn-lost-{n}-{rtt}", "nginx", curl("/500.bin"), T("syn-unanswered retransmission-timeout", "drop", True, "cm", f"the first {n} SYNs are dropped"), T("connection-setup", "drop", False, "", "opening took that long"),
              rtt=rtt, path={"drop": [f"up:syn:{n}"]})
        R(f"synack-lost-{rtt}", "go", curl("/r?size=500"), T("syn-unanswered retransmission-timeout", "drop", True, "cms", "the first SYN/ACK is dropped"), T("connection-setup", "drop", False, "", "opening took that long"), rtt=rtt, path={"drop": ["down:syn:1"]})
        for cc in ("cubic", "bbr"):
            R(f"middle-lost-{cc}-{rtt}", "nginx", curl("/200000.bin"), T("fast-retransmit", "drop", rtt > 0, "cms", "a segment with many behind it is dropped"), rtt=rtt, bulk=True, net={"cc": cc}, path={"drop": ["down:seq:60000:1"]})
        R(f"tail-lost-{rtt}", "nginx", curl("/20000.bin", "/500.bin"), T("tail-loss-probe retransmission-timeout", "drop", True, "s", "the last segment of the response is dropped"), T("tail-loss-probe retransmission-timeout", "drop", False, "", "the same elsewhere"),
          rtt=rtt, bulk=rtt, net={"cc": "cubic"}, path={"drop": ["down:seq:20150:1"]})
        R(f"tail-lost-twice-{rtt}", "nginx", curl("/20000.bin", "/500.bin"), T("retransmission-timeout tail-loss-probe", "drop", True, "s", "the last segment of the response is dropped twice"), rtt=rtt, bulk=rtt, net={"cc": "cubic"}, path={"drop": ["down:seq:20150:2"]})
        R(f"request-lost-{rtt}", "py", requests("/r?size=300", "/r?size=500"), T("retransmission-timeout tail-loss-probe", "drop", True, "cm", "the second request is dropped"), rtt=rtt, server_args=["--nodelay"], path={"drop": ["up:seq:200:1"]})
        R(f"response-lost-{rtt}", "go", curl("/r?size=300", "/r?size=500"), T("retransmission-timeout tail-loss-probe", "drop", True, "s", "the second response is dropped"), rtt=rtt, path={"drop": ["down:seq:500:1"]})
        R(f"retransmission-lost-{rtt}", "nginx", curl("/200000.bin"), T(LOSS, "drop", rtt > 0, "cms", "a segment and its retransmission are dropped"), rtt=rtt, bulk=True, net={"cc": "cubic"}, path={"drop": ["down:seq:60000:2"]})
        R(f"upload-lost-{rtt}", "go", script("connect;nagle off;post 150000 size=300"), T("fast-retransmit", "drop", rtt > 0, "cms", "a segment with many behind it is dropped"), rtt=rtt, bulk=True, net={"cc": "cubic"}, path={"drop": ["up:seq:50000:1"]})
        R(f"nosack-lost-{rtt}", "nginx", curl("/200000.bin"), T("fast-retransmit", "drop", rtt > 0, "cms", "a segment with many behind it is dropped; no SACK"), rtt=rtt, bulk=True, net={"cc": "reno", "sysctl": {"net.ipv4.tcp_sack": 0}}, path={"drop": ["down:seq:60000:1"]})
        R(f"tls-lost-{rtt}", "nginx", curl("/200000.bin"), T("fast-retransmit", "drop", rtt > 0, "cms", "a segment with many behind it is dropped"), rtt=rtt, bulk=True, tls=True, path={"drop": ["down:seq:60000:1"], "side": "client"})
        R(f"acks-lost-{rtt}", "nginx", curl("/200000.bin"), T(LOSS, "drop", False, "", "acknowledgements are dropped"), rtt=rtt, bulk=True, path={"drop": ["up:ack:30000:2"]}, net={"cc": "cubic"})
        R(f"client-side-tail-{rtt}", "go", curl("/r?size=300", "/r?size=5000", "/r?size=300"), T("tail-loss-probe retransmission-timeout", "drop", True, "ms", "the last segment of the second response is dropped"), rtt=rtt, path={"drop": ["down:seq:5350:1"], "side": "client"})
        R(f"think-and-loss-{rtt}", "py", script("connect;nagle off;get size=400;get size=60000&think=300"), T("server-think", "server:think", True, "cms", "the server sleeps"), T("fast-retransmit", "drop", rtt > 0, "cms", "a segment is dropped"), rtt=rtt, bulk=True, server_args=["--nodelay"], path={"drop": ["down:seq:20000:1"]})
    for rtt, cc, loss, seed in ((20, "cubic", 0.01, 1), (20, "bbr", 0.03, 2), (100, "cubic", 0.02, 3), (100, "bbr", 0.02, 4), (0, "cubic", 0.02, 5), (300, "reno", 0.01, 6), (20, "reno", 0.05, 7), (100, "cubic", 0.05, 8)):
        R(f"random-loss-{cc}-{rtt}-{seed}", "nginx", curl("/200000.bin", "/20000.bin"), T(LOSS, "drop", False, "cms", "packets are dropped at random"), T("connection-setup syn-unanswered", "drop", False, "", "a SYN may be lost"),
          rtt=rtt, bulk=True, net={"cc": cc}, path={"loss_down": loss, "loss_up": loss / 4, "seed": seed})


def failures():
    for rtt in (0, 20, 100, 300):
        R(f"refused-{rtt}", "none", curl("/"), T("connection-refused", "run", True, "cms", "nothing listens"), rtt=rtt)
        R(f"reset-{rtt}", "py", curl("/r?size=80000&reset=40000"), T("reset-mid-transfer reset-lost-data", "run", True, "cms", "the server resets in the middle of the response"), T("server-think", "server:before-reset", False, "", "the server sleeps before it resets"), rtt=rtt, bulk=True, server_args=["--nodelay"])
    for rtt in (0, 100):
        R(f"refused-wget-{rtt}", "none", "wget -q --tries=1 --no-proxy http://10.9.0.2:8081/", T("connection-refused", "run", True, "cms", "nothing listens"), rtt=rtt)
        R(f"client-reset-{rtt}", "py", script("connect;nagle off;ask size=2000000;sleep 300;reset"), T("reset-mid-transfer", "run", True, "cms", "the client resets in the middle of the response"), T("client-think zero-window receive-window-limited", "client:sleep", False, "", "the client does not read"), rtt=rtt, bulk=True, server_args=["--nodelay"])
        R(f"blackhole-{rtt}", "nginx", curl("/500.bin", flags="--connect-timeout 4"), T("syn-unanswered", "run", True, "cm", "SYNs are dropped"), T("retransmission-timeout", "run", False, "", "SYNs are dropped"), rtt=rtt, path={"drop": ["up:syn:99"]})
        R(f"blackhole-synack-{rtt}", "nginx", curl("/500.bin", flags="--connect-timeout 4"), T("syn-unanswered", "run", True, "cm", "SYN/ACKs are dropped"), T("retransmission-timeout peer-vanished syn-unanswered", "run", False, "", "SYN/ACKs are dropped"), rtt=rtt, path={"drop": ["down:syn:99"]})
        R(f"vanish-{rtt}", "nginx", curl("/200000.bin", flags="-m 5"), T("peer-vanished", "run", True, "s", "the path is cut in the middle of the response"), T("retransmission-timeout tail-loss-probe", "drop", False, "", "the sender's timers"), rtt=rtt, bulk=True, path={"cut": ["down:seq:60000"]})
        R(f"vanish-upload-{rtt}", "go", "timeout 5 " + script("connect;nagle off;post 150000 size=300"), T("peer-vanished", "run", True, "cm", "the path is cut in the middle of the request"), T("retransmission-timeout tail-loss-probe", "drop", False, "", "the sender's timers"), rtt=rtt, bulk=True, path={"cut": ["up:seq:60000"]})
        R(f"vanish-request-{rtt}", "go", script("connect;nagle off;get size=300;sleep 200;get size=300") + " & sleep 5; kill %1", T("peer-vanished", "run", True, "cm", "the path is cut before the second request"), T("retransmission-timeout tail-loss-probe", "drop", False, "", "the sender's timers"), T("client-think", "client:sleep", False, "", ""), rtt=rtt, path={"cut": ["up:seq:60"]})
        R(f"backlog-{rtt}", "py", "for i in 1 2 3 4 5; do " + curl("/r?size=1", flags="-m 3.5") + " & done; wait", T("syn-unanswered retransmission-timeout" + (" peer-vanished" if rtt else ""), "run", True, "cms", "the listen backlog is full; over a long path all SYNs arrive before it is"), T("server-think peer-vanished reset-mid-transfer reset-lost-data", "run", False, "", "those in the backlog are never served"), T("client-think", "open", False, "", "five programs start at once"), rtt=rtt, server_args=["--never-accept", "1"])
        R(f"mtu-hole-{rtt}", "nginx", curl("/200000.bin", flags="-m 6"), T("path-mtu", "run", True, "s", "packets above 1300 bytes are dropped without ICMP"), T("retransmission-timeout peer-vanished tail-loss-probe path-mtu", "run", False, "", "all full segments are lost"), rtt=rtt, bulk=True, path={"mtu": 1300})
        R(f"mtu-hole-upload-{rtt}", "go", "timeout 6 " + script("connect;nagle off;post 150000 size=300"), T("path-mtu peer-vanished", "run", True, "cm", "packets above 1300 bytes are dropped without ICMP"), T("retransmission-timeout peer-vanished tail-loss-probe path-mtu", "run", False, "", "all full segments are lost"), rtt=rtt, bulk=True, path={"mtu": 1300})
        R(f"mtu-icmp-{rtt}", "nginx", curl("/200000.bin"), T("path-mtu", "run", False, "", "packets above 1300 bytes are dropped with ICMP"), T("retransmission-timeout fast-retransmit tail-loss-probe", "drop", False, "", "the first flight is sent again"), rtt=rtt, bulk=True, path={"mtu": 1300, "icmp": 1})
        R(f"mtu-probing-{rtt}", "nginx", curl("/200000.bin", flags="-m 15"), T("path-mtu", "run", True, "s", "packets above 1300 bytes are dropped without ICMP; the server probes"), T("retransmission-timeout peer-vanished tail-loss-probe fast-retransmit path-mtu", "run", False, "", "all full segments are lost"), rtt=rtt, bulk=True, path={"mtu": 1300}, net={"sysctl": {"net.ipv4.tcp_mtu_probing": 1}})


def queues():
    for rtt, rate, cc in ((20, 10_000_000, "cubic"), (20, 10_000_000, "bbr"), (100, 10_000_000, "cubic"), (0, 5_000_000, "reno"), (20, 3_000_000, "cubic")):
        R(f"deep-queue-{cc}-{rtt}-{rate // 1_000_000}", "nginx", curl("/1000000.bin"), T("bottleneck-queue bandwidth-limited", "run", True, "cms", "a slow link with a deep queue"), T("slow-start", "run", False, "", ""), rtt=rtt, bulk=True, net={"cc": cc}, path={"rate": rate, "queue": 600_000})
        R(f"shallow-queue-{cc}-{rtt}-{rate // 1_000_000}", "nginx", curl("/1000000.bin"), T("bandwidth-limited", "run", False, "", "a slow link"), T(LOSS, "drop", False, "cms", "the queue overflows"), T("slow-start", "run", False, "", ""), rtt=rtt, bulk=True, net={"cc": cc}, path={"rate": rate, "queue": 25_000})
    for rtt, rate in ((20, 1_000_000), (100, 2_000_000)):
        R(f"slow-link-small-{rtt}", "nginx", curl("/20000.bin", "/500.bin", "/20000.bin"), T("bandwidth-limited bottleneck-queue", "run", False, "", "a slow link"), rtt=rtt, bulk=True, path={"rate": rate, "queue": 100_000})
        R(f"slow-uplink-{rtt}", "go", script("connect;nagle off;post 120000 size=300;get size=300"), T("bandwidth-limited bottleneck-queue", "run", False, "", "a slow link"), rtt=rtt, bulk=True, path={"rate": rate, "queue": 200_000}, net={"cc": "cubic"})


def protocol():
    for rtt in (0, 100):
        R(f"pipelined-{rtt}", "py", script("connect;nagle off;ask size=300&think=250;ask size=300;ask size=300;finish;finish;finish"), T("server-think head-of-line", "server:think", True, "cms", "the first of three pipelined requests is slow"), rtt=rtt, server_args=["--nodelay"])
        R(f"expect-{rtt}", "py", curl("/r?size=300", flags="-H 'Expect: 100-continue' -d @{fixtures}/www/20000.bin"), T("expect-100-continue", "run", True, "cms", "curl waits a second for 100 (Continue)"), T("client-think", "run", False, "", "the same, where the header cannot be read"), rtt=rtt, bulk=rtt, server_args=["--nodelay", "--no-continue"])
        R(f"expect-ok-{rtt}", "go", curl("/r?size=300", flags="-H 'Expect: 100-continue' -d @{fixtures}/www/20000.bin"), T("expect-100-continue", "run", rtt > 0, "cms", "curl waits a round trip for 100 (Continue)"), T("client-think", "run", False, "", "the same, where the header cannot be read"), rtt=rtt, bulk=rtt)
        R(f"per-request-{rtt}", "nginx", "for i in 1 2 3 4; do " + curl("/500.bin") + "; done", T("connection-per-request", "run", rtt > 0, "cms", "a connection for each request"), rtt=rtt)
        R(f"per-request-tls-{rtt}", "go", "for i in 1 2 3; do " + curl("/r?size=300") + "; done", T("connection-per-request", "run", False, "", "a connection for each request"), rtt=rtt, tls=True)
        R(f"alert-{rtt}", "nginx", "curl -s --noproxy '*' {url}/500.bin", T("tls-alert", "run", True, "cms", "the client does not trust the certificate"), T("client-think", "open", False, "", "curl loads its certificates during the handshake"), rtt=rtt, tls=True)
        R(f"alert-version-{rtt}", "nginx", "curl -sk --noproxy '*' --tls-max 1.2 {url}/500.bin", T("tls-alert", "run", True, "cms", "the server wants TLS 1.3"), rtt=rtt, tls=True, nginx="ssl_protocols TLSv1.3;")
        R(f"unread-{rtt}", "py", script("connect;nagle off;get size=300;ask size=3000&unread=1;raw 30000;finish"), T("reset-lost-data reset-mid-transfer", "run", True, "cms", "the server closes with data of the client unread"), T("server-think head-of-line", "server:late", False, "", "the server waits before it closes"), rtt=rtt, bulk=rtt, server_args=["--nodelay"])
    for rtt in (20, 100):
        R(f"certificates-{rtt}", "nginx", curl("/500.bin"), T("tls-certificate-flight", "run", True, "cms", "certificates of 20 kB do not fit a window of ten segments"), T("slow-start", "open", False, "", "the same by another name"), rtt=rtt, tls=True, cert="big")
        R(f"certificates-small-{rtt}", "nginx", curl("/500.bin"), rtt=rtt, tls=True, cert="ec")
        R(f"short-first-{rtt}", "py", script("connect;nagle off;get size=5000"), T("short-initial-segment nagle nagle-delayed-ack", "run", True, "cms", "the head leaves alone in a window of one segment"), T("slow-start delayed-ack congestion-window", "run", False, "", "a window of one segment"), rtt=rtt, server_args=["--split", "--nodelay"], net={"cc": "cubic", "route_s": "initcwnd 1"})


for family in (healthy, think, services, nagle, windows, losses, failures, queues, protocol):
    first = len(RUNS)
    family()
    for run in RUNS[first:]:
        run["family"] = family.__name__


def variants(runs, suffix, round_trips, congestion, odd):
    """Each run again over another path: other round trips, congestion control, offload, jitter, truncated packets."""
    for n, run in enumerate(copy.deepcopy(runs)):
        run["name"] += suffix
        run["path"]["rtt_ms"] = round_trips[run["path"]["rtt_ms"]]
        if not run["name"].startswith("idle-"):
            run["net"]["cc"] = congestion[run["net"].get("cc", "bbr")]
        run["net"]["offload"] = not run["net"].get("offload", False) and n % 2 == odd
        if n % 4 == odd and run["path"]["rtt_ms"]:
            run["path"].setdefault("jitter_us", 3000)
        if n % 9 == odd:
            run["snap"] = 80
        if "seed" in run["path"]:
            run["path"]["seed"] += 100 + 100 * odd
        yield run


FIRST = list(RUNS)
RUNS += variants(FIRST, "-v2", {0: 0, 20: 35, 100: 60, 300: 170}, {"bbr": "cubic", "cubic": "reno", "reno": "bbr"}, 0)
RUNS += variants(FIRST, "-v3", {0: 0, 20: 25, 100: 80, 300: 220}, {"bbr": "reno", "cubic": "bbr", "reno": "cubic"}, 1)
assert len({r["name"] for r in RUNS}) == len(RUNS), [n for n in (r["name"] for r in RUNS) if [r["name"] for r in RUNS].count(n) > 1]
