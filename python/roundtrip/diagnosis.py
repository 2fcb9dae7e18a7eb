"""Causes of stalls, from packet captures."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any, Iterable, Union

import pyarrow as pa

from roundtrip import _kernel

Capture = Union[str, os.PathLike[str], bytes]
# Columns of findings that are numbers, in milliseconds.
NUMBERS = ("at_ms", "lost_ms", "saving_ms")


class Diagnosis:
    """Diagnosed captures.

    `findings` is an Arrow table with a row for each finding: capture, client, server, cause, severity, confidence, `at_ms`,
    `lost_ms`, `saving_ms` (null if unknown), packets, evidence, fix.
    """

    def __init__(self, kernel: _kernel.KernelDiagnosis) -> None:
        self._kernel = kernel

    @property
    def json(self) -> list[dict[str, Any]]:
        """The object of each capture that `roundtrip diagnose --format json` prints."""
        reports = json.loads(self._kernel.json())
        return reports if isinstance(reports, list) else [reports]

    @property
    def findings(self) -> pa.Table:
        """A row for each finding."""
        heading, *rows = csv.reader(io.StringIO(self._kernel.csv(), newline=""))
        columns = dict(zip(heading, zip(*rows))) if rows else {name: () for name in heading}
        arrays = {
            name: pa.array([float(cell) if cell else None for cell in cells], pa.float64())
            if name in NUMBERS
            else pa.array(cells, pa.string())
            for name, cells in columns.items()
        }
        return pa.table(arrays)

    @property
    def fails(self) -> bool:
        """Whether a finding of at least medium severity was made, as the command line's exit status 1 says."""
        return any(capture["verdict"]["fails"] for capture in self.json)

    def to_html(self) -> str:
        """The page that `roundtrip diagnose --report` writes."""
        return self._kernel.html()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.findings.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        lines = [f"{row['cause']}: {row['lost_ms']:.0f} ms lost; {row['fix']}" for row in self.findings.to_pylist()]
        return "\n".join(lines) or "no findings"


def diagnose(captures: Capture | Iterable[Capture], *, causes: Iterable[str] = ()) -> Diagnosis:
    """Names the cause of every stall in captures (pcap, pcapng, also gzip, zstd): `roundtrip diagnose`.

    `captures`: a path, the bytes of a capture, or several of them. `causes`: only findings of these.

    Raises ValueError for a file that is not a capture, OSError for one that cannot be read.

        >>> roundtrip.diagnose("slow.pcapng").findings.to_pandas()[["cause", "lost_ms", "fix"]]
    """
    if isinstance(captures, (str, os.PathLike, bytes)):
        captures = [captures]
    read = [
        ("capture", capture) if isinstance(capture, bytes) else (str(capture), Path(capture).read_bytes())
        for capture in captures
    ]
    return Diagnosis(_kernel.diagnose(read, list(causes)))
