#!/usr/bin/env python3
"""Bottlenecks that `roundtrip load` names, beside the one that each set-up has.

    python3 run.py ROUNDTRIP [--repeat 10] [--only NAME] [--file FILE.csv]

Each set-up is run in a closed loop and in an open schedule. Needs Python alone; nginx, network namespaces and CPU hogs
where a set-up has them, which is skipped otherwise.
"""

import argparse
import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Duration of a run, and timeout of its requests.
SECONDS = "3s"
SERVER = [sys.executable, os.path.join(HERE, "servers.py")]

# Name, server, names that are right, flags of the closed loop, flags of the open schedule.
SETUPS = [
    ("one core", "one_core", {"server-cpu"}, ["--users", "10"], ["--rate", "800"]),
    ("Nagle", "nagle", {"delayed-ack"}, ["--users", "10"], ["--rate", "300", "--share", "10"]),
    ("sleep of 40 ms", "sleep", {"fixed-wait"}, ["--users", "10"], ["--rate", "50"]),
    ("database of one connection", "database", {"server-wait"}, ["--users", "10"], ["--rate", "200"]),
    ("four connections", "connection_limit", {"server-connections"}, ["--users", "10"], ["--rate", "500", "--share", "10"]),
    ("accept queue", "accept_queue", {"accept-queue"}, ["--users", "40", "--protocol", "http10"], ["--rate", "150", "--protocol", "http10"]),
    ("connections of the generator", "sleep", {"connections"}, None, ["--rate", "1000", "--share", "10"]),
    ("users", "sleep", {"fixed-wait"}, ["--users", "2"], None),
    ("rate limit of nginx", "nginx", {"rate-limit"}, ["--users", "10"], ["--rate", "300"]),
    ("rate limit with a queue", "nginx_queue", {"server-wait"}, ["--users", "10"], ["--rate", "300"]),
    ("ports of the client", "ports", {"generator-sockets"}, ["--users", "10", "--early-close"], ["--rate", "1000", "--early-close"]),
    ("slow network", "link", {"network"}, ["--users", "10"], ["--rate", "60"]),
    ("busy generator", "hog", {"generator"}, ["--users", "10"], ["--rate", "1000"]),
]

NGINX = """
worker_processes 1; daemon off; pid {directory}/pid; error_log {directory}/error;
events {{}}
http {{
  access_log off;
  limit_req_zone $binary_remote_addr zone=all:1m rate=100r/s;
  server {{ listen 127.0.0.1:{port}; root {directory}; location / {{ limit_req zone=all{queue}; }} }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, prefix=()):
    for _ in range(100):
        if prefix:
            check = "import socket; socket.create_connection(('127.0.0.1', %d), 1).close()" % port
            if subprocess.run([*prefix, sys.executable, "-c", check], stderr=subprocess.DEVNULL).returncode == 0:
                return
        else:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                pass
        time.sleep(0.05)
    raise SystemExit("the server does not start")


class Skipped(Exception):
    """A program or a right is missing."""


def needs(program):
    if not shutil.which(program):
        raise Skipped(program)


def load(roundtrip, port, flags, prefix=(), host="127.0.0.1"):
    command = [*prefix, roundtrip, "load", f"http://{host}:{port}/", "--for", SECONDS, "--timeout", SECONDS, "--format", "json"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True)
    try:
        return json.loads(done.stdout)[0]
    except (json.JSONDecodeError, IndexError):
        raise SystemExit(f"{' '.join([*command, *flags])}: {done.stderr}") from None


def run(roundtrip, server, flags):
    port, children, directory, prefix, host = free_port(), [], tempfile.mkdtemp(), (), "127.0.0.1"
    try:
        if server in ("nginx", "nginx_queue"):
            needs("nginx")
            queue = " burst=1000" if server == "nginx_queue" else ""
            with open(f"{directory}/nginx.conf", "w") as file:
                file.write(NGINX.format(directory=directory, port=port, queue=queue))
            with open(f"{directory}/index.html", "w") as file:
                file.write("hello")
            os.chmod(directory, 0o755)
            children.append(subprocess.Popen(["nginx", "-c", f"{directory}/nginx.conf", "-e", f"{directory}/error"]))
        elif server == "link":
            # Server and generator talk across the link, which has 4 Mbit/s.
            script = f"{' '.join(SERVER)} large {port} 0.0.0.0 & sleep 1; exec {{}}"
            return through_link(roundtrip, port, flags, script)
        elif server == "ports":
            needs("unshare")
            name = f"roundtrip-bottlenecks-{os.getpid()}"
            if os.geteuid() != 0 or not shutil.which("ip"):
                raise Skipped("root and ip")
            subprocess.run(["ip", "netns", "add", name], check=True)
            prefix = ("ip", "netns", "exec", name)
            children.append(name)
            subprocess.run([*prefix, "ip", "link", "set", "lo", "up"], check=True)
            ports = "echo 40000 40199 > /proc/sys/net/ipv4/ip_local_port_range"
            subprocess.run([*prefix, "sh", "-c", ports], check=True)
            children.append(subprocess.Popen([*prefix, *SERVER, "fast", str(port)]))
        else:
            kind = "fast" if server == "hog" else server
            children.append(subprocess.Popen([*SERVER, kind, str(port)]))
        wait_for(port, prefix)
        if server == "hog":
            children.append(subprocess.Popen([*SERVER, "hog", "0"], start_new_session=True))
            time.sleep(0.2)
            prefix = ("nice", "-n", "19")
        return load(roundtrip, port, flags, prefix, host)
    finally:
        for child in reversed(children):
            if isinstance(child, str):
                subprocess.run(["ip", "netns", "del", child])
            elif server == "hog" and child.args[-1] == "0":
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            else:
                child.terminate()
                child.wait()
        shutil.rmtree(directory)


def through_link(roundtrip, port, flags, script):
    command = f"{roundtrip} load http://127.0.0.1:{port}/ --for {SECONDS} --timeout {SECONDS} --format json {' '.join(flags)}"
    link = [roundtrip, "link", "--network", "fibre", "--rate", "20Mbit", "--", "sh", "-c", script.format(command)]
    done = subprocess.run(link, capture_output=True, text=True, start_new_session=True)
    start = done.stdout.find("[\n")
    if start < 0:
        raise Skipped(f"roundtrip link: {done.stderr.strip()[-200:]}")
    return json.JSONDecoder().raw_decode(done.stdout[start:])[0][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roundtrip")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--only")
    parser.add_argument("--file")
    flags = parser.parse_args()
    roundtrip = os.path.abspath(flags.roundtrip)
    rows, wrong = [], 0
    for name, server, right, closed, opened in SETUPS:
        if flags.only and flags.only not in name:
            continue
        for loop, load_flags in (("closed", closed), ("open", opened)):
            if load_flags is None:
                continue
            named, example = {}, ""
            try:
                for _ in range(flags.repeat):
                    result = run(roundtrip, server, load_flags)
                    found = result["bottleneck"]["name"]
                    named[found] = named.get(found, 0) + 1
                    if found not in right or not example:
                        example = result["bottleneck"]["sentence"] + " | " + " | ".join(result["bottleneck"]["evidence"])
            except Skipped as missing:
                print(f"skipped: {name}, {loop}: {missing}", flush=True)
                continue
            hits = sum(count for found, count in named.items() if found in right)
            wrong += hits < flags.repeat
            words = ", ".join(f"{found} {count}" for found, count in sorted(named.items()))
            print(f"{hits:>3} of {flags.repeat}  {name}, {loop}: {words}", flush=True)
            if hits < flags.repeat:
                print(f"          {example}", flush=True)
            rows.append([name, loop, "|".join(sorted(right)), hits, flags.repeat, words, example])
    if flags.file:
        with open(flags.file, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["set_up", "loop", "right", "hits", "runs", "named", "example"])
            writer.writerows(rows)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
