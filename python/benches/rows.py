"""CPU time of 1,000 scenarios of 10 runs from Python and from the command line, and of the import.

    python benches/rows.py ROUNDTRIP
"""

import os
import resource
import subprocess
import sys

GRID = "rtt='10ms..200ms*5', rate='20Mbit', loss=['0%', '1%'], protocol='http11', seed=range(1, 101), runs=10, threads=1"
FLAGS = "--rtt 10ms..200ms*5 --rate 20Mbit --loss 0%,1% --protocol http11 --seed 1..100 --runs 10 --threads 1 --format csv"
REPETITIONS = 5


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    commands = {
        "import pyarrow": [sys.executable, "-c", "import pyarrow"],
        "import roundtrip": [sys.executable, "-c", "import roundtrip"],
        "simulate from Python": [sys.executable, "-c", f"import roundtrip; roundtrip.simulate({GRID})"],
        "simulate from the command line": [os.path.abspath(sys.argv[1]), "simulate", *FLAGS.split()],
    }
    # Alternately: a host's speed varies.
    rounds = [{name: cpu_seconds(command) for name, command in commands.items()} for _ in range(REPETITIONS)]
    for name in commands:
        print(f"{name}: {min(times[name] for times in rounds):.2f} s of CPU, the minimum of {REPETITIONS}")


if __name__ == "__main__":
    main()
