"""Scores `diagnose` by the truth of the runs. usage: eval.py BINARY [a|b|ab] [--wrong-b] [--missed] [--json FILE] [--names NAME...]

Half a or b by a hash of the run's name. A finding is right if one of the run's truths has its cause and covers at least half of
its interval, both widened as below; an expected truth is found if such a finding exists at a capture point where it is expected.
Wrong findings of half b are not listed (it is held out) unless asked for.
"""
import argparse, hashlib, json, struct, subprocess, sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent
POINTS = {"c": "client", "m": "middle", "s": "server"}
FAR = 10**18
# A repair is right only if one of the kernels counted such a repair in the run (nstat). A probe is sent by a timer, too.
COUNTED = {
    "retransmission-timeout": ("TcpExtTCPTimeouts", "TcpExtTCPLossProbes", "TcpExtTCPSynRetrans"),
    "tail-loss-probe": ("TcpExtTCPLossProbes",),
    "fast-retransmit": ("TcpExtTCPFastRetrans", "TcpExtTCPSlowStartRetrans", "TcpExtTCPLostRetransmit"),
}


def half(name):
    return "ab"[hashlib.sha256(name.encode()).digest()[0] & 1]


def logged(path, name):
    if not path.exists():
        return []
    rows = [line.split() for line in path.read_text().splitlines()]
    return [(int(r[1]), int(r[2])) for r in rows if len(r) == 3 and r[0] == name]


def relay_rows(directory):
    keys = ("t", "dir", "event", "port", "first", "payload", "flags", "queue")
    for line in (directory / "relay.csv").read_text().splitlines():
        row = dict(zip(keys, line.split(",")))
        if len(row) == len(keys):
            yield {k: v if k in ("dir", "event") else int(v) for k, v in row.items()}


def drops(directory, rtt):
    """From each dropped packet (a round trip earlier: the ends know that only later) until a copy passes, and its answer."""
    rows, found = list(relay_rows(directory)), []
    for i, r in enumerate(rows):
        if r["event"] != "pass":
            end = next((x["t"] for x in rows[i + 1:] if x["event"] == "pass" and x["dir"] == r["dir"] and x["port"] == r["port"]
                        and (x["payload"] > 0) == (r["payload"] > 0) and x["first"] <= r["first"] < x["first"] + max(1, x["payload"])), r["t"] + 3_000_000)
            found.append((r["t"] - rtt, end + rtt))
    return found


def has_dropped(directory):
    """Whether one of the run's captures lacks packets, as tcpdump reports at its end."""
    lines = (directory / "tcpdump.out").read_text().splitlines()
    return any(int(line.split()[0]) for line in lines if line.endswith("packets dropped by kernel"))


def intervals(directory, run, kind, kernel):
    """Of a truth, in microseconds since 1970."""
    rtt = run["path"].get("rtt_ms", 0) * 1000
    name, _, field = kind.partition(":")
    if kind in ("run", "open"):
        return [(0, FAR)]
    if name in ("client", "server"):
        return logged(directory / f"{name}.log", field)
    if kind == "drop":
        return drops(directory, rtt)
    if kind == "drop+":
        all_drops = drops(directory, rtt)
        return [(min(d[0] for d in all_drops), FAR)] if all_drops else []
    if kind == "capture":
        return [(0, FAR)] if has_dropped(directory) else []
    if kind == "kernel:zero":
        return [(0, FAR)] if any("TcpExtTCPToZeroWindowAdv" in c for c in kernel["counters"].values()) else []
    if name == "kernel":
        return [(0, FAR)] if any(kernel["limited_ms"].get(side, {}).get(field, 0) >= 5 for side in ("client", "server")) else []
    if kind == "queue":
        found = []
        for r in relay_rows(directory):
            if r["queue"] >= 5000:
                if found and r["t"] - found[-1][1] < 100_000:
                    found[-1][1] = r["t"] + r["queue"]
                else:
                    found.append([r["t"], r["t"] + r["queue"]])
        return [tuple(f) for f in found]
    raise ValueError(kind)


def diagnose(binary, path):
    out = subprocess.run([binary, "diagnose", "--format", "json", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if out.returncode not in (0, 1):
        return None, out.stderr.decode(errors="replace")[-300:]
    return json.loads(out.stdout), None


def open_end(path, base_us, flow):
    """The end of a connection's opening: 3 round trips of the path and half a second after its first packet."""
    return base_us + flow["at_ms"] * 1000 + 500_000


def judge(binary, directory, letter):
    run = json.loads((directory / "truth.json").read_text())
    kernel = json.loads((directory / "kernel.json").read_text())
    rtt = run["path"].get("rtt_ms", 0) * 1000
    slack = rtt + 15_000
    path = directory / f"{POINTS[letter]}.pcap"
    report, error = diagnose(binary, path)
    if error is not None:
        return {"run": run, "letter": letter, "error": error, "findings": [], "truths": []}
    base = (report.get("started_unix_ms") or 0) * 1000
    truths = [{**t, "spans": intervals(directory, run, t["interval"], kernel), "hits": 0} for t in run["truth"]]
    findings = []
    for flow in report["flows"]:
        for f in flow["findings"]:
            start = base + f["at_ms"] * 1000
            end = start + max(f["lost_ms"] or 0, 0) * 1000
            right = False
            for t in truths:
                counters = COUNTED.get(f["cause"])
                is_counted = not counters or any(c in side for side in kernel["counters"].values() for c in counters)
                if f["cause"] not in t["causes"] or not is_counted:
                    continue
                for s, e in t["spans"]:
                    if t["interval"] == "open":
                        e = base + flow["at_ms"] * 1000 + 500_000 + 6 * rtt
                    overlap = min(end, e + slack) - max(start, s - slack)
                    if overlap >= (end - start) / 2:
                        t["hits"] += 1
                        right = True
                        break
            findings.append({"right": right, **{k: f[k] for k in ("cause", "confidence", "severity", "at_ms", "lost_ms", "packets", "evidence")}})
    return {"run": run, "letter": letter, "error": None, "findings": findings, "truths": truths}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("binary")
    p.add_argument("half", nargs="?", default="a", choices=("a", "b", "ab"))
    p.add_argument("--wrong-b", action="store_true")
    p.add_argument("--missed", action="store_true", help="lists expected truths that were not found, in half a")
    p.add_argument("--json", metavar="FILE", help="writes all judged findings of half a")
    p.add_argument("--names", nargs="*", default=[])
    args = p.parse_args()
    directories = sorted(f for f in (ROOT / "runs").iterdir() if (f / "done").exists() and half(f.name) in args.half and (not args.names or any(n in f.name for n in args.names)))
    jobs = [(args.binary, f, letter) for f in directories for letter in POINTS]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda j: judge(*j), jobs))
    if args.json:
        rows = [{"pcap": f"runs/{r['run']['name']}/{POINTS[r['letter']]}.pcap", **f} for r in results if half(r["run"]["name"]) == "a" for f in r["findings"]]
        Path(args.json).write_text(json.dumps(rows, indent=1))
    counts, causes, found = (defaultdict(lambda: [0, 0]) for _ in range(3))
    cases = {}
    wrong, missed = [], []
    for r in results:
        name = r["run"]["name"]
        if r["error"]:
            print("ERROR", name, r["letter"], r["error"])
        for f in r["findings"]:
            kind = "notes" if f["severity"] == "note" else "faults"
            for key in ((f["confidence"], "all"), (f["confidence"], kind)):
                counts[key][0] += f["right"]
                counts[key][1] += 1
            case = f["confidence"], f["severity"] == "note", f["cause"], name, r["letter"]
            cases[case] = cases.get(case, True) and f["right"]
            if f["confidence"] != "low":
                causes[f["cause"], f["confidence"]][0] += f["right"]
                causes[f["cause"], f["confidence"]][1] += 1
            if not f["right"] and (half(name) == "a" or args.wrong_b):
                wrong.append((f["confidence"], name, POINTS[r["letter"]], f))
        for t in r["truths"]:
            if t["expect"] and t["spans"] and r["letter"] in t["points"]:
                found[" ".join(t["causes"])][0] += t["hits"] > 0
                found[" ".join(t["causes"])][1] += 1
                if not t["hits"] and half(name) == "a":
                    missed.append((name, POINTS[r["letter"]], t["causes"], t["interval"]))
    print(f"{len(directories)} runs, {len(jobs)} captures of half {args.half}")
    for (confidence, kind), (right, total) in sorted(counts.items()):
        print(f"confidence {confidence:6} {kind:6} {right} of {total} right ({right / total:.1%})")
    print("\ncases (all findings of one cause and confidence in a capture are right):")
    for confidence in ("high", "medium", "low"):
        for kind, wanted in (("all", (True, False)), ("faults", (False,)), ("notes", (True,))):
            these = [right for (c, note, *_), right in cases.items() if c == confidence and note in wanted]
            if these:
                print(f"confidence {confidence:6} {kind:6} {sum(these)} of {len(these)} right ({sum(these) / len(these):.1%})")
    print("\nby cause (high and medium):")
    for (cause, confidence), (right, total) in sorted(causes.items()):
        print(f"  {cause:24} {confidence:6} {right} of {total}")
    print("\nexpected truths found:")
    for cause, (hits, total) in sorted(found.items()):
        print(f"  {cause:50} {hits} of {total}")
    if args.missed:
        print("\nmissed:")
        for m in missed:
            print("  ", *m)
    print("\nwrong:")
    for confidence, name, point, f in sorted(wrong, key=lambda w: ({"high": 0, "medium": 1, "low": 2}[w[0]], w[3]["cause"], w[1])):
        print(f"  {confidence} {f['severity']} {f['cause']} runs/{name}/{point}.pcap at {f['at_ms']:.0f} for {f['lost_ms']:.1f} ms, packets {f['packets']}: {f['evidence'][:300]}")


main()
