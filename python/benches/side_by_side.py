"""Speed of counting an access log, compared with DuckDB and Polars.

    pip install ./python duckdb polars
    cargo build --profile dist --features full
    python python/benches/side_by_side.py target/dist/roundtrip [REQUESTS] [ROUNDS]

A synthetic log in Common Log Format, from the page cache; one core, one thread, each engine in its own process;
alternating runs, and medians of CPU seconds, which depend less on other load.

parse: time, client, status and size of every line as numbers; their count and sum. Roundtrip rejects lines of another
    format; DuckDB and Polars split at blanks and quotes.
grid: connections opened, for 20 timeouts, 2 limits and 3 thresholds. Roundtrip also finds the maximum of simultaneous
    connections. The others compute `count(*) FILTER (gap > T)` over `lag(t, K)`; the numbers must be the same.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any, Callable

TIMEOUTS_S = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 18, 20, 25, 30, 40, 50, 60]
LIMITS = [1, 3]
THRESHOLDS = [0, 1460, 4096]
COLUMNS = ["client", "ident", "user", "date", "zone", "request", "status", "size"]
TIME = "[%d/%b/%Y:%H:%M:%S%z]"


def main(program: str, requests: int = 2_000_000, rounds: int = 5) -> None:
    """Runs the engines alternately, and prints a table."""
    with tempfile.TemporaryDirectory() as directory:
        log = str(Path(directory) / "access.log")
        subprocess.run([program, "logs", "synthesize", "--requests", str(requests), "-o", log], check=True)
        seconds: dict[tuple[str, str], list[float]] = {}
        for number in range(rounds):
            outcomes: dict[str, Any] = {}
            for task, engine in ENGINES:
                cpu_s, outcome = _once(task, engine, program, log)
                if outcomes.setdefault(task, outcome) != outcome:
                    raise SystemExit(f"{engine} reports other numbers for {task}: {outcome} and {outcomes[task]}")
                seconds.setdefault((task, engine), []).append(cpu_s)
            print(f"round {number + 1} of {rounds}: the same numbers", file=sys.stderr)
    print(f"{requests} records, medians of {rounds}; load of the host {os.getloadavg()[0]:.1f}\n")
    print("| | engine | M records per CPU second | Roundtrip is faster |\n| --- | --- | --- | --- |")
    for (task, engine), all_seconds in seconds.items():
        median, roundtrip_median = statistics.median(all_seconds), statistics.median(seconds[task, "roundtrip"])
        print(f"| {task} | {engine} | {requests / median / 1e6:.2f} | {median / roundtrip_median:.1f} times |")


def _once(task: str, engine: str, program: str, log: str) -> tuple[float, Any]:
    """Runs once on one core; returns the CPU seconds and the numbers."""
    command = [sys.executable, __file__, "--once", task, engine, program, log]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    core = max(os.sched_getaffinity(0))
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    return tuple(json.loads(run.stdout))


def _parse_roundtrip(_: str, log: str) -> Callable[[], Any]:
    import pyarrow.compute as pc
    from roundtrip import Query, files
    from roundtrip._kernel import Lines

    def parse() -> Any:
        lines = Lines(Query(header_bytes=0).kernel(), "clf", b"")
        read = [lines.block(block)[0] for block in files.blocks(Path(log))]
        return [sum(len(batch) for batch in read), sum(pc.sum(batch.column("bytes")).as_py() for batch in read)]

    return parse


def _grid_roundtrip(program: str, log: str) -> Callable[[], Any]:
    def grid() -> Any:
        flags = ["--threads", "1", "--header-bytes", "0", "--format", "json"]
        run = subprocess.run([program, "connections", *flags, log], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        rows = json.loads(run.stdout)
        cells = {(row["connections_per_client"], row["threshold_bytes"], row["timeout_s"]): row["total_connections"] for row in rows}
        return [[cells[limit, size, timeout] for timeout in TIMEOUTS_S] for limit, size in product(LIMITS, THRESHOLDS)]

    return grid


def _duckdb(log: str) -> tuple[Any, str]:
    import duckdb

    database = duckdb.connect(config={"threads": 1})
    database.execute("SET preserve_insertion_order = false")
    columns = ", ".join(f"'{name}': '{'BIGINT' if name in ('status', 'size') else 'VARCHAR'}'" for name in COLUMNS)
    read = f"read_csv('{log}', delim=' ', quote='\"', escape='\"', header=false, auto_detect=false, nullstr='-', columns={{{columns}}})"
    return database, f"SELECT epoch(strptime(date || zone, '{TIME}'))::BIGINT AS t, hash(client) AS client, status, size FROM {read}"


def _parse_duckdb(_: str, log: str) -> Callable[[], Any]:
    database, requests = _duckdb(log)
    counted = f"SELECT count(size), sum(size)::BIGINT, max(t), max(client), max(status) FROM ({requests})"
    return lambda: list(database.execute(counted).fetchone()[:2])


def _grid_duckdb(_: str, log: str) -> Callable[[], Any]:
    database, requests = _duckdb(log)
    opened = ", ".join(f"count(*) FILTER (gap IS NULL OR gap > {timeout})" for timeout in TIMEOUTS_S)

    def grid() -> Any:
        database.execute(f"CREATE TABLE requests AS {requests}")
        cells = []
        for limit, size in product(LIMITS, THRESHOLDS):
            gaps = f"SELECT t - lag(t, {limit}) OVER (PARTITION BY client ORDER BY t) AS gap FROM requests WHERE size >= {size}"
            cells.append(list(database.execute(f"SELECT {opened} FROM ({gaps})").fetchone()))
        return cells

    return grid


def _polars(log: str) -> Any:
    import polars as pl

    kinds = {name: pl.Int64 if name in ("status", "size") else pl.String for name in COLUMNS}
    lines = pl.scan_csv(log, separator=" ", has_header=False, schema=kinds, null_values="-")
    time = pl.concat_str("date", "zone").str.to_datetime(TIME, time_unit="ms").dt.epoch("s")
    return lines.select(time.alias("t"), pl.col("client").hash(), "status", "size")


def _parse_polars(_: str, log: str) -> Callable[[], Any]:
    import polars as pl

    sums = [pl.col("size").count(), pl.col("size").sum().alias("sum"), pl.max("t"), pl.max("client"), pl.max("status")]
    return lambda: list(_polars(log).select(*sums).collect(engine="streaming").row(0)[:2])


def _grid_polars(_: str, log: str) -> Callable[[], Any]:
    import polars as pl

    opened = [((pl.col("gap") > timeout) | pl.col("gap").is_null()).sum().alias(str(timeout)) for timeout in TIMEOUTS_S]

    def grid() -> Any:
        requests = _polars(log).collect(engine="streaming").sort("t", maintain_order=True)
        cells = []
        for limit, size in product(LIMITS, THRESHOLDS):
            gap = (pl.col("t") - pl.col("t").shift(limit).over("client")).alias("gap")
            cells.append(list(requests.filter(pl.col("size") >= size).select(gap).select(opened).row(0)))
        return cells

    return grid


ENGINES = {
    ("parse", "roundtrip"): _parse_roundtrip,
    ("parse", "DuckDB"): _parse_duckdb,
    ("parse", "Polars"): _parse_polars,
    ("grid", "roundtrip"): _grid_roundtrip,
    ("grid", "DuckDB"): _grid_duckdb,
    ("grid", "Polars"): _grid_polars,
}


def _run_timed(task: str, engine: str, program: str, log: str) -> None:
    """Runs in a child process; excludes imports, and includes the CPU time of its children."""
    work = ENGINES[task, engine](program, log)
    before = _cpu_s()
    outcome = work()
    print(json.dumps([_cpu_s() - before, outcome]))


def _cpu_s() -> float:
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        _run_timed(*sys.argv[2:])
    else:
        main(sys.argv[1], *map(int, sys.argv[2:]))
