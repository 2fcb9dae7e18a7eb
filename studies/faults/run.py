"""Runs the faults and their healthy twins: `run.py ROUNDTRIP [--only TEXT] [--transports NAMES] [--jobs N] [--sample] [--savings]
[--keys]`.

Each runs in a private network under `roundtrip diagnose --run`, behind an emulated link where the table names one. Prints a
line for each disagreement, and a table in Markdown. With `--keys` the capture is diagnosed again with the key log that the client wrote:
what is right in the clear must then be found over TLS. Exit status 0 if all agree, 1 if not, 77 if it cannot run here.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from table import ALL, CASES

HERE = Path(__file__).resolve().parent
# A Python that an ordinary user may run.
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
LANGUAGES = ("go", "c", "java")
RELAYS = ("nginx", "haproxy")
# Commands that run the built programs.
BUILT = {}
# Directory of key logs and captures, with --keys.
KEYS = None
# Those of the sample: some of each kind, the quickest of them.
SAMPLE = {("nagle-server", "tls13"), ("think", "h2"), ("per-request-left", "tls12"), ("hello-retry", "tls13"), ("nagle-client", "h2c")}


def certificates(directory):
    """A certificate with its key, and a chain of many that are larger than an initial window."""

    def made(name, *algorithm):
        command = ["openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", f"/CN={name}", *algorithm]
        files = [str(directory / f"{name}.key"), str(directory / f"{name}.pem")]
        subprocess.run([*command, "-keyout", files[0], "-out", files[1]], check=True, capture_output=True)
        return files

    key, certificate = made("localhost", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
    _, authority = made("authority", "-newkey", "rsa:4096")
    chain = directory / "chain.pem"
    # TLS repeats what is given: the same certificate counts each time.
    chain.write_text(Path(certificate).read_text() + 20 * Path(authority).read_text())
    directory.chmod(0o755)
    Path(key).chmod(0o644)
    store = directory / "store.p12"
    command = ["openssl", "pkcs12", "-export", "-in", certificate, "-inkey", key, "-passout", "pass:secret", "-out", str(store)]
    subprocess.run(command, check=True)
    store.chmod(0o644)
    os.environ.update(FAULTS_CERT=certificate, FAULTS_KEY=key, FAULTS_CHAIN=str(chain), FAULTS_STORE=str(store))


def build(language, directory):
    """Builds the program in a language; returns the command that runs it."""
    program = str(directory / f"program-{language}")
    if language == "go":
        environment = {**os.environ, "GOCACHE": str(directory / "cache"), "GO111MODULE": "off", "CGO_ENABLED": "0"}
        subprocess.run(["go", "build", "-o", program, str(HERE / "program.go")], check=True, env=environment)
    elif language == "c":
        subprocess.run(["gcc", "-O1", "-o", program, str(HERE / "program.c")], check=True)
    elif language == "java":
        subprocess.run(["javac", "-d", program, str(HERE / "Program.java")], check=True)
        return ["java", "-Xshare:auto", "-cp", program, "Program"]
    return [program]


def program_of(fault):
    """The command that runs a fault: its prefix names a language or a relay."""
    kind = fault.split("-")[0]
    if kind in RELAYS:
        return [PYTHON, str(HERE / "relay.py")]
    return BUILT.get(kind, [PYTHON, str(HERE / "exchange.py")])


def command(roundtrip, case, transport, way, written=None):
    program = [*program_of(case.fault), case.fault, transport, way]
    flags = ["diagnose", "--format", "json", "--run"]
    if written:
        flags[1:1] = ["--write", written]
    if case.network:
        # Servers of a test count only by name there.
        by_name = ["--fail-on", "medium,server-think:100"] if way == "faulty" else []
        return [roundtrip, *flags, *by_name, f"--isolated={case.network}", "--", *program]
    rules = f"add table inet f; add chain inet f i {{ type filter hook input priority 0; }}; add rule inet f i {case.filter}"
    dropping = f'nft "{rules}" && ' if case.filter and way == "faulty" else ""
    return ["unshare", "-n", "sh", "-c", f'ip link set lo up && {dropping}exec "$@"', "sh", roundtrip, *flags, "--", *program]


def report(roundtrip, case, transport, way, written=None):
    """The exit status, and the report, or the last line of an error."""
    run = {"capture_output": True, "text": True, "cwd": "/", "timeout": 30}
    log = KEYS and KEYS / f"{case.fault}-{transport}-{way}"
    written = written or (log and f"{log}.pcapng")
    variables = {"SSLKEYLOGFILE": str(log), "NODE_OPTIONS": f"--tls-keylog={log}"} if log else {}
    made = command(roundtrip, case, transport, way, written)
    done = subprocess.run(made, env={**os.environ, **variables}, **run)
    if log and log.exists() and "CLIENT_" in log.read_text() and done.returncode in (0, 1):
        # As with --isolated, where servers count only by name.
        rules = ["--allow", "server-think"] if case.network and way == "healthy" else []
        rules += made[made.index("--fail-on") :][:2] if "--fail-on" in made else []
        again = [roundtrip, "diagnose", "--format", "json", written, "--keys", str(log), *rules]
        done = subprocess.run(again, **run)
    if done.returncode not in (0, 1):
        return done.returncode, done.stderr.strip()[-400:]
    return done.returncode, json.loads(done.stdout)


def judged(roundtrip, case, transport, way, written=None):
    """The exit status, and the causes in the order in which they are printed."""
    status, made = report(roundtrip, case, transport, way, written)
    if isinstance(made, str):
        return status, [made]
    causes = [cause["cause"] for cause in made["causes"]]
    # The capture of a loopback has each packet once.
    has_copies = any(flow["captured_twice"] for flow in made["flows"])
    return status, causes + ["duplicate-capture"] * has_copies


def elapsed(made):
    """Milliseconds from the first packet of all connections to the last, without their ends: a pool closes when its program ends."""
    flows = made["flows"]
    ends = [flow["at_ms"] + flow["elapsed_ms"] - flow["account_ms"].get("closing", 0) for flow in flows]
    return max(ends) - min(flow["at_ms"] for flow in flows)


def savings(roundtrip, chosen):
    """Compares the savings of the expected cause with those that the twin obtains; within a fifth is right."""
    print("| fault | transport | predicted | obtained |\n| --- | --- | --- | --- |")
    right = total = 0
    for case, transport, way in chosen:
        # The pause of idle-restart is no part of the fault.
        if way != "faulty" or not case.has_healthy or case.fault == "idle-restart":
            continue
        (_, faulty), (_, healthy) = (report(roundtrip, case, transport, way) for way in ("faulty", "healthy"))
        if isinstance(faulty, str) or isinstance(healthy, str):
            continue
        expected = case.except_for.get(transport, case.first).split()
        # Of several causes that may come first, the one that does.
        of_cause = [cause for cause in faulty["causes"] if cause["cause"] in expected and cause.get("saving_ms")][:1]
        predicted, obtained = sum(cause["saving_ms"] for cause in of_cause), elapsed(faulty) - elapsed(healthy)
        # A failure has no saving, and a few milliseconds are the host's.
        if predicted < 20:
            continue
        is_right = abs(predicted - obtained) <= max(obtained / 5, 10)
        right, total = right + is_right, total + 1
        print(f"| {case.fault} | {transport} | {predicted:.0f} ms | {obtained:.0f} ms{'' if is_right else ' (no)'} |", flush=True)
    print(f"{right} of {total} savings are right")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("roundtrip")
    parser.add_argument("--only", default="")
    parser.add_argument("--transports", default=",".join(ALL))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--savings", action="store_true", help="compare predicted with obtained savings")
    parser.add_argument("--keys", action="store_true", help="diagnose with the clients' key logs")
    parser.add_argument("--write", type=Path, help="directory for the captures of disagreements")
    arguments = parser.parse_args()
    roundtrip = str(Path(arguments.roundtrip).resolve())
    with tempfile.TemporaryDirectory() as directory:
        certificates(Path(directory))
        if arguments.keys:
            global KEYS
            KEYS = Path(directory) / "keys"
            KEYS.mkdir()
            KEYS.chmod(0o777)
        sys.exit(run(arguments, roundtrip))


def is_chosen(arguments, case, transport):
    if arguments.sample:
        return (case.fault, transport) in SAMPLE
    return arguments.only in case.fault and transport in arguments.transports.split(",")


def run(arguments, roundtrip):
    chosen = [
        (case, transport, way)
        for case in CASES
        if all(shutil.which(program) for program in case.needs)
        for transport in case.transports
        if is_chosen(arguments, case, transport)
        for way, has in (("faulty", case.has_faulty), ("healthy", case.has_healthy))
        if has
    ]

    for language in LANGUAGES:
        if any(case.fault.startswith(f"{language}-") for case, _, _ in chosen):
            BUILT[language] = build(language, Path(os.environ["FAULTS_CERT"]).parent)
    if arguments.savings:
        return savings(roundtrip, chosen)

    def one(item):
        case, transport, way = item
        written = arguments.write and str(arguments.write / f"{case.fault}-{transport}-{way}.pcapng")
        try:
            return item, *judged(roundtrip, *item, written)
        except subprocess.TimeoutExpired:
            return item, 124, ["it did not end"]

    cells, wrong = {}, 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for (case, transport, way), status, causes in pool.map(one, chosen):
            # With keys nothing is hidden: the exceptions are those of the same protocol in the clear.
            readable = {"tls12": "clear", "tls13": "clear", "h2": "h2c"}.get(transport, transport) if KEYS else transport
            expected = case.except_for.get(readable, case.first).split()
            first = causes[0] if causes and status == 1 else "nothing"
            is_right = status == 0 if way == "healthy" else first in expected
            is_right &= case.network is not None or "duplicate-capture" not in causes
            wrong += not is_right
            cells[case.fault, transport, way] = is_right
            if not is_right:
                wanted = "silence" if way == "healthy" else " or ".join(expected)
                print(f"{case.fault} {transport} {way}: exit {status}, {', '.join(causes) or 'nothing'}; expected {wanted}", flush=True)
    print(f"| fault | {' | '.join(ALL)} |\n| --- |{' --- |' * len(ALL)}")
    for case in CASES:
        row = [
            "/".join({True: "right", False: "WRONG", None: ""}[cells.get((case.fault, transport, way))] for way in ("faulty", "healthy"))
            for transport in ALL
        ]
        if any(cell != "/" for cell in row):
            print(f"| {case.fault} | {' | '.join(row)} |")
    print(f"{len(cells) - wrong} of {len(cells)} agree")
    return 1 if wrong else 0


main()
