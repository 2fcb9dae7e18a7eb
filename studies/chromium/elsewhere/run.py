#!/usr/bin/env python3
"""run.py ROUNDTRIP FILE.csv PAGE...: records pages with Chromium on a fast network, visits them over slower ones, and predicts.
run.py visits PAGE COUNT RTTms-RATEMbit...: prints `load` of each visit by HTTP/2.

A page is recorded over HTTP/2 at 1 Gbit/s and 2 ms, three visits, of which the median counts; then over two networks by HTTP/1.1,
HTTP/2 and, where Go is installed, HTTP/3 (quic-go), three visits each. Recordings are kept beside the table, and used instead of new
ones where they are there; with the table there, too, only the predictions are made again. Needs root, Chromium, Node, a C compiler,
OpenSSL and ip; and puppeteer-core and chrome-har.
"""

import csv
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# One way in microseconds, bit/s down and up, packets in a queue; and the same for Roundtrip.
NETWORKS = {
    "fast": ((1000, 10**9, 10**9, 10000), ["--rtt", "2ms", "--rate", "1Gbit"]),
    "cable": ((14000, 100 * 10**6, 20 * 10**6, 1000), ["--network", "cable"]),
    "4g": ((35000, 12 * 10**6, 12 * 10**6, 1000), ["--network", "4g"]),
    "60ms-8Mbit": ((30000, 8 * 10**6, 8 * 10**6, 1000), ["--rtt", "60ms", "--rate", "8Mbit"]),
    "24ms-30Mbit": ((12000, 30 * 10**6, 30 * 10**6, 1000), ["--rtt", "24ms", "--rate", "30Mbit"]),
}
PROTOCOLS = ["http2", "http11-parallel"] + (["http3"] if shutil.which("go") else [])
COLUMNS = ["page", "network", "protocol", "measured_load_ms", "simulated_load_ms", "formula_load_ms"]


def run(*command):
    subprocess.run(command, check=True)


def prepare(work):
    """The link's program, a certificate, and names of hosts."""
    run("cc", "-O2", "-o", work / "link", HERE / "link.c")
    names = ",".join(f"DNS:h{host}.test" for host in range(8))
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
        "-subj", "/CN=h0.test", "-addext", f"subjectAltName={names}", "-keyout", work / "key.pem", "-out", work / "certificate.pem")
    digest = "openssl x509 -in certificate.pem -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64"
    (work / "key.sha256").write_bytes(subprocess.check_output(digest, shell=True, cwd=work))
    if "http3" in PROTOCOLS:
        run("go", "build", "-C", HERE / "http3", "-o", work / "http3", ".")
    hosts = pathlib.Path("/etc/netns/elsewhere-client/hosts")
    hosts.parent.mkdir(parents=True, exist_ok=True)
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"10.50.2.1{host} h{host}.test\n" for host in range(8)))


class Network:
    """Both namespaces with a link between them, and the page's server."""

    def __init__(self, work, name, page, protocol="http2"):
        for side in ["client", "server"]:
            subprocess.run(["ip", "netns", "add", f"elsewhere-{side}"], check=False, stderr=subprocess.DEVNULL)
            run("ip", "-n", f"elsewhere-{side}", "link", "set", "lo", "up")
        link = [work / "link", *map(str, NETWORKS[name][0])]
        self.programs = [subprocess.Popen(link, stdout=subprocess.PIPE)]
        self.programs[0].stdout.readline()
        for side, addresses in [("client", ["10.50.1.2"]), ("server", [f"10.50.2.1{host}" for host in range(8)])]:
            namespace = ["ip", "-n", f"elsewhere-{side}"]
            for address in addresses:
                run(*namespace, "address", "add", f"{address}/32", "dev", "link")
            run(*namespace, "link", "set", "dev", "link", "up")
            # The host's default congestion control may be another.
            run(*namespace, "route", "replace", "default", "dev", "link", "src", addresses[0], "congctl", "cubic")
        servers = [["node", HERE / "server.cjs", str(page)]]
        if protocol == "http3":
            (work / "objects.json").write_bytes(subprocess.check_output([*servers[0], "list"]))
            servers = [[work / "http3", "certificate.pem", "key.pem", "objects.json"]]
        for server in servers:
            command = ["ip", "netns", "exec", "elsewhere-server", *server]
            self.programs.append(subprocess.Popen(command, cwd=work))
        time.sleep(1)
        self.work = work

    def visit(self, *arguments):
        command = ["ip", "netns", "exec", "elsewhere-client", "node", HERE / "visit.mjs", *map(str, arguments)]
        return json.loads(subprocess.check_output(command, cwd=self.work, timeout=120))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        for program in self.programs:
            program.kill()
            program.wait()


def predicted(roundtrip, engine, recording, network, protocol):
    command = [roundtrip, engine, "--page", recording, "--protocol", protocol, "--format", "json", *NETWORKS[network][1]]
    # The server that visits meet; the recording is of HTTP/2.
    command += ["--http3-server", "quic-go"] if protocol == "http3" else []
    row = json.loads(subprocess.check_output(command, stderr=subprocess.DEVNULL))[0]
    return row["load_ms"], [note for note in row["notes"] if "races with rendering" in note]


def clean(work):
    shutil.rmtree(work)
    for side in ["client", "server"]:
        subprocess.run(["ip", "netns", "delete", f"elsewhere-{side}"], check=False, stderr=subprocess.DEVNULL)


def visits(page, count, networks):
    work = pathlib.Path(tempfile.mkdtemp())
    prepare(work)
    for name in networks:
        rtt, rate = (int(part.rstrip("msMbit")) for part in name.split("-"))
        NETWORKS[name] = ((rtt * 500, rate * 10**6, rate * 10**6, 1000), [])
        with Network(work, name, page) as network:
            print(name, *(f"{network.visit('http2', 1)[0]:.0f}" for _ in range(count)), flush=True)
    clean(work)


def write(table, rows):
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def main(roundtrip, table, pages):
    table = pathlib.Path(table).resolve()
    recordings = table.with_suffix("")
    recordings.mkdir(exist_ok=True)
    rows = list(csv.DictReader(table.open())) if table.exists() else []
    work = pathlib.Path(tempfile.mkdtemp())
    prepare(work)
    slow = [name for name in NETWORKS if name != "fast"]
    for page in pages:
        recording = recordings / f"page-{page}.har"
        if not recording.exists():
            with Network(work, "fast", page) as network:
                network.visit("http2", 3, recording)
        if any(row["page"] == str(page) for row in rows):
            continue
        for name in [slow[page % 4], slow[(page + 1 + page // 4 % 3) % 4]]:
            for protocol in PROTOCOLS:
                with Network(work, name, page, protocol) as network:
                    times = network.visit(protocol, 3)
                    rows.append({"page": str(page), "network": name, "protocol": protocol,
                                 "measured_load_ms": f"{statistics.median(times):.1f}"})
        write(table, rows)
    clean(work)
    errors = {"simulated_load_ms": [], "formula_load_ms": []}
    raced = 0
    for row in rows:
        for column, engine in [("simulated_load_ms", "simulate"), ("formula_load_ms", "predict")]:
            recording = recordings / f"page-{row['page']}.har"
            load, races = predicted(roundtrip, engine, recording, row["network"], row["protocol"])
            row[column] = f"{load:.1f}"
            raced += engine == "simulate" and len(races)
            errors[column].append(abs(load / float(row["measured_load_ms"]) - 1) * 100)
        print(" ".join(f"{row[column]:>18}" for column in COLUMNS))
    write(table, rows)
    for column, values in errors.items():
        values.sort()
        print(f"{column}: {statistics.median(values):.1f}% and {values[int(len(values) * 0.9)]:.1f}% of {len(values)} cells")
    print(f"`load` races with rendering in {raced} of {len(rows)} cells, as simulated")


if __name__ == "__main__":
    if len(sys.argv) < 4 or os.geteuid() != 0:
        sys.exit(__doc__)
    if sys.argv[1] == "visits":
        visits(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    else:
        main(sys.argv[1], sys.argv[2], [int(page) for page in sys.argv[3:]])
