"""Runs the study: `run.py ROUNDTRIP DIR [--runs N] [--healthy N] [--jobs N] [--only TEXT]`; prints tables in Markdown.

Every program runs with the fault and without it, judged by `watch` and by `diagnose --run --isolated`, as an ordinary user
without capabilities (as root by setpriv). A thread of another process keeps a CPU busy meanwhile. A run is right if its
exit status is: 1 with the fault and 0 without, and if with the fault the cause is Nagle's. DIR is for built programs.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# A Python that an ordinary user may run.
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
NAGLE = {"nagle", "nagle-delayed-ack"}


def build(directory):
    """The servers by language, and a certificate; builds those of Go and Rust."""
    programs = {}
    for name in ("client", "server"):
        command = ["go", "build", "-o", str(directory / f"go-{name}"), f"./{name}"]
        subprocess.run(command, cwd=HERE / "go", check=True, env={**os.environ, "CGO_ENABLED": "0"})
    target = os.environ.get("GATE_TARGET", str(directory / "target"))
    subprocess.run(
        ["cargo", "build", "--quiet", "--manifest-path", str(HERE / "rust/Cargo.toml"), "--target-dir", target], check=True
    )
    programs["rust"] = [target + "/debug/gate-server"]
    programs["go"] = [str(directory / "go-server")]
    programs["python"] = [PYTHON, str(HERE / "server.py")]
    programs["node"] = ["node", str(HERE / "server.js")]
    key, certificate = str(directory / "key.pem"), str(directory / "cert.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
        + ["-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    os.chmod(key, 0o644)
    os.environ.update(GATE_CERT=certificate, GATE_KEY=key)
    return programs


def cases(directory, programs):
    """(name, command with the fault, command without it)."""
    client = str(directory / "go-client")
    for language, program in programs.items():
        for kind in ("h1", "tls", "h2", "grpc"):
            exchange = lambda way: [client, kind, "12", *program, kind, way]
            yield f"{language} {kind}", exchange("apart"), exchange("whole")
    stdlib = lambda way: [client, "h1", "12", *programs["python"], "stdlib", way]
    yield "python http.server", stdlib("apart"), stdlib("whole")
    axum = lambda way: [client, "pipeline", "48", *programs["rust"], "axum", way]
    yield "axum, pipelined requests", axum("apart"), axum("whole")
    patterns = [PYTHON, str(HERE / "patterns.py")]
    for name in subprocess.run([*patterns, "list"], capture_output=True, text=True, check=True).stdout.split():
        yield name, [*patterns, name, "fault"], [*patterns, name, "fixed"]


def as_user(command):
    if os.geteuid() != 0:
        return command
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    return drop + command


def judged(roundtrip, method, command):
    """The exit status, and the causes that the verdict rests on."""
    flags = {
        "watch": ["watch", "--interval", "1ms", "--format", "json", "--"],
        "diagnose": ["diagnose", "--format", "json", "--run", "--isolated", "--"],
    }[method]
    done = subprocess.run(as_user([roundtrip, *flags, *command]), capture_output=True, text=True, cwd="/")
    if done.returncode not in (0, 1):
        return done.returncode, {done.stderr.strip()[-300:]}
    if method == "watch":
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        stalls = [line for line in lines if line["event"] == "stall" and line["severity"] in ("medium", "high")]
        if lines[-1]["command_status"] != 0:
            return 3, {done.stderr.strip()[-300:]}
        return done.returncode, {stall["cause"] for stall in stalls}
    report = json.loads(done.stdout)
    if report["command_status"] != 0 or "watched instead" in done.stderr:
        return 3, {done.stderr.strip()[-300:]}
    return done.returncode, {case["cause"] for case in report["verdict"]["cases"] if case["outcome"] == "fails"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("roundtrip")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--healthy", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    directory = arguments.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    os.chmod(directory, 0o755)
    roundtrip = str(Path(arguments.roundtrip).resolve())
    every = [case for case in cases(directory, build(directory)) if arguments.only in case[0]]
    pool = concurrent.futures.ThreadPoolExecutor(arguments.jobs)
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        print("| program | with the fault: watch | diagnose | without: watch | diagnose |\n| --- | --- | --- | --- | --- |")
        wrong = []
        for name, fault, fixed in every:
            cells = []
            for command, expected in ((fault, 1), (fixed, 0)):
                for method in ("watch", "diagnose"):
                    right = 0
                    for status, causes in pool.map(lambda _: judged(roundtrip, method, command), range(arguments.runs)):
                        is_right = status == expected and (expected == 0 or bool(causes & NAGLE))
                        right += is_right
                        if not is_right:
                            wrong.append((name, "fault" if expected else "fixed", method, status, sorted(causes)))
                            print(wrong[-1], file=sys.stderr, flush=True)
                    cells.append(f"{right} of {arguments.runs}")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        print(f"\nHealthy programs in turn, {arguments.healthy} runs by each method:\n")
        for method in ("watch", "diagnose"):
            causes = collections.Counter()
            began = time.monotonic()
            failures = 0
            healthy = lambda number: judged(roundtrip, method, every[number % len(every)][2])
            for number, (status, found) in enumerate(pool.map(healthy, range(arguments.healthy))):
                failures += status != 0
                if status != 0:
                    causes.update([(every[number % len(every)][0], status, *sorted(found))])
            seconds = time.monotonic() - began
            print(f"- {method}: {failures} failures in {arguments.healthy} runs ({seconds:.0f} s) {dict(causes) or ''}", flush=True)
        if wrong:
            print("\nWrong:\n")
            for entry, times in collections.Counter(map(str, wrong)).items():
                print(f"- {times}: {entry}")
    finally:
        neighbour.kill()
        neighbour.wait()


main()
