"""Runs the conversations of runs.py between network namespaces, captured at the client, half-way and at the server.

usage: lab.py [-j JOBS] [NAME...]     runs those that have no result yet (all, or names that contain a NAME)

A run's directory has truth.json (written before the run), client.pcap, middle.pcap, server.pcap, the programs' logs of their
delays (client.log, server.log), relay.csv (what the path did with each packet), and the kernels' counters (kernel.json).
"""
import argparse, json, os, re, shutil, signal, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent
FIXTURES, PROGRAMS, RUNS = ROOT / "fixtures", ROOT / "programs", ROOT / "runs"
POSTGRES = threading.Lock()


def sh(command, check=True):
    return subprocess.run(command, shell=True, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


class Network:
    def __init__(self, index, run, directory):
        self.c, self.r, self.s = (f"{x}{os.getpid() % 10000}-{index}" for x in "crs")
        c, r, s, net = self.c, self.r, self.s, run["net"]
        off = "tso off gso off gro off tx off rx off"
        offload = net.get("offload", False)
        lines = [f"ip netns add {n}; ip -n {n} link set lo up; ip netns exec {n} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1" for n in (c, r, s)]
        lines += [
            f"ip -n {c} link add c0 type veth peer name ra netns {r}",
            f"ip -n {s} link add s0 type veth peer name rb netns {r}",
            f"ip netns exec {r} ethtool -K ra gro off 2>&1; ip netns exec {r} ethtool -K rb gro off 2>&1",
        ]
        for n, device, address in ((c, "c0", "10.9.0.1"), (s, "s0", "10.9.0.2")):
            lines += [
                f"ip -n {n} addr add {address}/24 dev {device}; ip -n {n} link set {device} up",
                f"ip netns exec {n} ethtool -K {device} {'gro on' if offload else off} 2>&1",
            ]
            sysctls = {"net.ipv4.tcp_no_metrics_save": 1}
            sysctls |= net.get("sysctl", {})
            lines.append(f"ip netns exec {n} sysctl -qw " + " ".join(f"{k}='{v}'" for k, v in sysctls.items()))
            # A namespace may not choose its congestion control by sysctl, but by route.
            lines.append(f"ip -n {n} route change 10.9.0.0/24 dev {device} src {address} congctl {net.get('cc', 'bbr')} {net.get('route_' + n[0], '')}")
        lines += [f"ip -n {r} link set ra up; ip -n {r} link set rb up"]
        self.log = sh("\n".join(["set -e"] + lines))
        options = [f"{k}={v}" for k, v in run["path"].items() if k not in ("drop", "cut", "rtt_ms")]
        options.append(f"delay_us={run['path'].get('rtt_ms', 0) * 500}")
        for kind in ("drop", "cut"):
            options += [f"{kind}={rule}" for rule in run["path"].get(kind, [])]
        self.relay = self.start(r, [ROOT / "relay", "ra", "rb", "mid", directory / "relay.csv", *options], directory / "relay.err")
        for _ in range(100):
            if "mid" in sh(f"ip -n {r} -br link", check=False):
                break
            time.sleep(0.01)
        sh(f"ip -n {r} link set mid up")
        # Neighbours are known before the conversation.
        sh(f"ip netns exec {c} ping -c1 -W3 10.9.0.2", check=False)

    def start(self, ns, command, out, **options):
        with open(out, "ab") as f:
            return subprocess.Popen(["ip", "netns", "exec", ns, *map(str, command)], stdout=f, stderr=f, stdin=subprocess.DEVNULL,
                                    start_new_session=True, **options)

    def close(self):
        stop(self.relay)
        for n in (self.c, self.r, self.s):
            pids = sh(f"ip netns pids {n}", check=False).split()
            for pid in pids:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except OSError:
                    pass
            sh(f"ip netns del {n}", check=False)


def stop(process, sig=signal.SIGTERM):
    if process and process.poll() is None:
        try:
            os.killpg(process.pid, sig)
        except OSError:
            pass
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def server_commands(run, directory):
    """The commands of a run's server, its port, and whether a warm-up request is possible."""
    kind, log, tls = run["server"], directory / "server.log", run.get("tls", False)
    cert, key = FIXTURES / f"{run.get('cert', 'ec')}.crt", FIXTURES / f"{run.get('cert', 'ec')}.key"
    extra = run.get("server_args", [])
    python = ["python3", PROGRAMS / "server.py", "--log", log]
    nginx_tls = f"ssl_certificate {cert}; ssl_certificate_key {key};" if tls else ""
    port = 443 if tls else 80
    if kind == "py":
        return [python + (["--tls", cert, key] if tls else []) + ["--port", 8443 if tls else 8000] + extra], 8443 if tls else 8000
    if kind == "node":
        return [["node", PROGRAMS / "server.js", port, log] + ([cert, key] if tls else [])], port
    if kind == "go":
        return [[PROGRAMS / "goserver.bin", 8080, log] + ([cert, key] if tls else [])], 8080
    if kind == "java":
        return [["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", *extra, "-cp", PROGRAMS, "Server", 8080, log]], 8080
    if kind == "nginx":
        (directory / "nginx.conf").write_text(f"""daemon off; master_process off; pid {directory}/nginx.pid; error_log {directory}/nginx.err; user root;
events {{ worker_connections 64; }}
http {{ access_log off; keepalive_timeout {run.get('keepalive', '65s')}; sendfile {run.get('sendfile', 'on')}; types {{ }} default_type application/octet-stream;
client_body_temp_path {directory}/t1; proxy_temp_path {directory}/t2; fastcgi_temp_path {directory}/t3; uwsgi_temp_path {directory}/t4; scgi_temp_path {directory}/t5;
server {{ listen {port} {'ssl' if tls else ''} {run.get('listen', '')}; {nginx_tls} root {FIXTURES}/www; {run.get('nginx', '')}
location /r {{ proxy_pass http://127.0.0.1:8000; proxy_buffering {run.get('buffering', 'on')}; proxy_http_version 1.1; }} }} }}
""")
        return [python + ["--port", 8000, "--nodelay"], ["nginx", "-p", directory, "-c", directory / "nginx.conf"]], port
    if kind == "apache":
        ssl = f"LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so\nSSLEngine on\nSSLCertificateFile {cert}\nSSLCertificateKeyFile {key}\n" if tls else ""
        (directory / "apache.conf").write_text(f"""ServerRoot {directory}
ServerName h
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
{ssl}Listen {port}
PidFile {directory}/apache.pid
ErrorLog {directory}/apache.err
DocumentRoot {FIXTURES}/www
KeepAliveTimeout {run.get('keepalive', 5)}
User www-data
Group www-data
""")
        return [["apache2", "-X", "-f", directory / "apache.conf"]], port
    if kind == "lighttpd":
        (directory / "lighttpd.conf").write_text(f'server.document-root = "{FIXTURES}/www"\nserver.port = 8080\nserver.max-keep-alive-idle = 5\n')
        return [["lighttpd", "-D", "-f", directory / "lighttpd.conf"]], 8080
    if kind == "haproxy":
        if tls:
            (directory / "both.pem").write_text(cert.read_text() + key.read_text())
        (directory / "haproxy.cfg").write_text(f"""defaults
 mode http
 timeout client 20s
 timeout server 20s
 timeout connect 5s
frontend f
 bind :{port} {f'ssl crt {directory}/both.pem' if tls else ''}
 default_backend b
backend b
 server s 127.0.0.1:8000
""")
        return [python + ["--port", 8000, "--nodelay"], ["haproxy", "-f", directory / "haproxy.cfg"]], port
    if kind == "redis":
        return [["redis-server", "--port", 6379, "--protected-mode", "no", "--save", "", "--enable-debug-command", "yes", "--dir", directory]], 6379
    if kind == "postgres":
        return [["su", "postgres", "-c", f"exec /usr/lib/postgresql/15/bin/postgres -D {FIXTURES}/pg -c listen_addresses=* -c unix_socket_directories= -c fsync=off"]], 5432
    if kind == "ssh":
        shutil.copy(FIXTURES / "user_key.pub", directory / "keys")
        (directory / "sshd.conf").write_text(f"""Port 22
HostKey {FIXTURES}/host_key
AuthorizedKeysFile {directory}/keys
StrictModes no
UsePAM no
UseDNS no
PidFile none
PermitRootLogin yes
""")
        return [["/usr/sbin/sshd", "-D", "-f", directory / "sshd.conf"]], 22
    return [], run.get("port", 80)


def run_one(index, run):
    directory = RUNS / run["name"]
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    (directory / "truth.json").write_text(json.dumps(run, indent=1))
    lock = POSTGRES if run["server"] == "postgres" else None
    if lock:
        lock.acquire()
    network = None
    processes, captures = [], []
    try:
        network = Network(index, run, directory)
        commands, port = server_commands(run, directory)
        for command in commands:
            processes.append(network.start(network.s, command, directory / "server.out"))
        tls, kind = run.get("tls", False), run["server"]
        url = f"http{'s' if tls else ''}://10.9.0.2:{port}"
        if commands:
            for _ in range(300):
                if f":{port} " in sh(f"ip netns exec {network.s} ss -ltnH", check=False) + " ":
                    break
                time.sleep(0.05)
            else:
                raise RuntimeError("the server does not listen")
            if kind not in ("redis", "postgres", "ssh") and "--never-accept" not in run.get("server_args", []):
                warm = f"http{'s' if tls else ''}://127.0.0.1:{port}/" + ("500.bin" if kind in ("nginx", "apache", "lighttpd") else "r?size=300")
                for _ in range(2):
                    sh(f"ip netns exec {network.s} curl -sk -m 5 -o /dev/null '{warm}'", check=False)
            for f in ("server.log",):
                (directory / f).unlink(missing_ok=True)
        for command in run.get("before", []):
            sh(f"ip netns exec {network.s} sh -c '{command}'", check=False)
        snap = run.get("snap", 0)
        for point, ns, device in (("client", network.c, "c0"), ("middle", network.r, "mid"), ("server", network.s, "s0")):
            captures.append(network.start(ns, ["tcpdump", "-Z", "root", "-B", "16384", "-U", "--immediate-mode", "-s", snap, "-i", device, "-w", directory / f"{point}.pcap"], directory / "tcpdump.out"))
        for _ in range(100):
            if (directory / "tcpdump.out").read_text().count("listening on") == 3:
                break
            time.sleep(0.02)
        samplers = [network.start(ns, ["sh", "-c", "while :; do date +%s.%N; ss -tinHO; sleep 0.06; done"], directory / f"ss-{name}.log")
                    for ns, name in ((network.c, "client"), (network.s, "server"))]
        captures += samplers
        expand = {"{url}": url, "{port}": str(port), "{clog}": str(directory / "client.log"), "{programs}": str(PROGRAMS), "{fixtures}": str(FIXTURES),
                  "{slog}": str(directory / "server.log"), "{directory}": str(directory), "{tls}": "tls" if tls else "plain"}
        command = run["client"]
        for k, v in expand.items():
            command = command.replace(k, v)
        client = network.start(network.c, ["bash", "-c", command], directory / "client.out")
        try:
            client.wait(run.get("limit", 25))
        except subprocess.TimeoutExpired:
            pass
        stop(client)
        time.sleep(run.get("linger", 0.25) + run["path"].get("rtt_ms", 0) / 400)
        for c in captures:
            stop(c, signal.SIGINT if c not in samplers else signal.SIGTERM)
        counters = {}
        for name, ns in (("client", network.c), ("server", network.s)):
            text = sh(f"ip netns exec {ns} nstat -az --json 2>/dev/null", check=False)
            try:
                counters[name] = {k: v for k, v in json.loads(text)["kernel"].items() if v and k.startswith("Tcp")}
            except (ValueError, KeyError):
                counters[name] = {}
        limits = {}
        for name in ("client", "server"):
            path = directory / f"ss-{name}.log"
            text = path.read_text(errors="replace") if path.exists() else ""
            limits[name] = {}
            for field in ("rwnd_limited", "sndbuf_limited"):
                values = [int(v) for v in re.findall(field + r":(\d+)ms", text)]
                if values:
                    limits[name][field] = max(values)
            cwnd = [int(v) for v in re.findall(r"cwnd:(\d+)", text)]
            limits[name]["cwnd"] = [min(cwnd), max(cwnd)] if cwnd else []
            path.unlink(missing_ok=True)
        (directory / "kernel.json").write_text(json.dumps({"counters": counters, "limited_ms": limits}, indent=1))
        late = [int(v) for v in re.findall(r"late (\d+)", (directory / "relay.err").read_text())]
        if late and max(late) > 5000:
            print(run["name"], "the path was late by", max(late), "us", flush=True)
        else:
            (directory / "done").touch()
            print(run["name"], "ok", flush=True)
    except Exception as e:
        print(run["name"], "FAILED", repr(e), getattr(e, "stdout", ""), flush=True)
    finally:
        for p in processes + captures:
            stop(p, signal.SIGINT if run["server"] == "postgres" else signal.SIGTERM)
        if network:
            network.close()
        if lock:
            lock.release()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-j", type=int, default=2)
    p.add_argument("--again", action="store_true")
    p.add_argument("--truth-only", action="store_true", help="writes truth.json of runs that have a result")
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    sys.path.insert(0, str(ROOT))
    import runs

    if args.truth_only:
        for r in runs.RUNS:
            if (RUNS / r["name"] / "done").exists():
                (RUNS / r["name"] / "truth.json").write_text(json.dumps(r, indent=1))
        return
    todo = [r for r in runs.RUNS if (not args.names or any(n in r["name"] for n in args.names)) and (args.again or not (RUNS / r["name"] / "done").exists())]
    print(len(todo), "of", len(runs.RUNS))
    for attempt in range(3):  # again where the host was too busy for the path
        with ThreadPoolExecutor(args.j) as pool:
            list(pool.map(lambda x: run_one(*x), enumerate(todo)))
        todo = [r for r in todo if not (RUNS / r["name"] / "done").exists()]


if __name__ == "__main__":
    main()
