"""Scenarios predicted, simulated and compared, with the command line's names, values and digits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterable, Sequence, TypedDict, Union

from roundtrip._kernel import KernelGrid, KernelRows, Table
from roundtrip.pages import Page, read
from roundtrip.svg import Svg

if TYPE_CHECKING:
    from typing_extensions import Unpack

# A value of a key: a text as on the command line ("20ms", "0%,1%", "10ms..200ms*8"), a number without a unit, on or off.
Value = Union[str, int, float, bool]
Values = Union[Value, Iterable[Value]]


class Scenario(TypedDict, total=False):
    """Keyword arguments: the command line's flags with underscores. Every list or range multiplies.

    `docs/reference/settings.md` explains all keys; those of one direction end in `_up` or `_down`.
    """

    network: Values
    page: Union[str, os.PathLike[str], Page, Sequence[Union[str, os.PathLike[str], Page]]]
    protocol: Values
    tls: Values
    stack: Values
    engine: Values
    visit: Values
    requests: Values
    request_size: Values
    parallel: Values
    connection: Values
    processing: Values
    sharing: Values
    acks: Values
    runs: Values
    seed: Values
    rtt: Values
    rate: Values
    rate_up: Values
    delay_up: Values
    mss: Values
    mtu: Values
    modem: Values
    network_trace: Values
    queue: Values
    queue_up: Values
    queue_down: Values
    queue_discipline: Values
    queue_discipline_up: Values
    queue_discipline_down: Values
    loss: Values
    loss_up: Values
    loss_down: Values
    jitter: Values
    jitter_up: Values
    jitter_down: Values
    reordering: Values
    reordering_up: Values
    reordering_down: Values
    duplication: Values
    duplication_up: Values
    duplication_down: Values
    client_pages: Values
    client_pause: Values
    client_idle: Values
    client_setup: Values
    client_dns: Values
    client_think: Values
    client_reading: Values
    client_file: Values
    client_buffer: Values
    client_flush: Values
    client_flush_explicit: Values
    client_first_bytes: Values
    client_validation: Values
    client_codings: Values
    client_defect: Values
    client_stack: Values
    browser: Values
    http2_client: Values
    http3_client: Values
    http2_server: Values
    http3_server: Values
    server_idle: Values
    server_connections: Values
    server_changed: Values
    server_setup: Values
    server_write: Values
    server_head: Values
    server_buffer: Values
    server_compression: Values
    server_requests: Values
    server_close: Values
    dhttp: Values
    nagle: Values
    send_buffer: Values
    receive_buffer: Values
    initial_window: Values
    idle: Values
    idle_after: Values
    rto_min: Values
    rto_initial: Values


class Rows:
    """A row for each scenario and engine; pandas, Polars and Arrow take it without copies (`__arrow_c_stream__`).

    Columns: names (`network`, `page`, `visit`, `protocol`, `engine`, `stack`, `tls`); a typed column for each key that was
    set or varies, with its unit (`rtt_ms`, `rate_down_mbps`, `loss_percent`, `parallel`, `seed`, ...); the metrics of
    `docs/reference/json.md`, null where the engine does not know them; `notes`, a list of sentences.

        >>> rows = roundtrip.simulate(rtt="10ms..200ms*4", rate="20Mbit", loss=["0%", "1%"], seed=range(10))
        >>> pandas.DataFrame.from_arrow(rows).groupby(["rtt_ms", "loss_percent"])["elapsed_ms"].mean()
    """

    def __init__(self, kernel: KernelRows) -> None:
        self._kernel = kernel
        self._rows = kernel.rows()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._rows.columns

    @property
    def stalls(self) -> Table:
        """A row for each stall: the number of its row, from 1, the same names and keys, `cause`, `at_ms`, `lost_ms`."""
        return self._kernel.stalls()

    def to_csv(self) -> str:
        """The text that the command line prints with `--format csv`."""
        return self._kernel.csv()

    def plot(self) -> Svg:
        """A heat map of the times if two numbers vary beside the seed, else a bar for each row.

        Raises ValueError if no time is known, or if the rows are too many for a picture.
        """
        return Svg(self._kernel.svg())

    def __repr__(self) -> str:
        return self._kernel.text() if len(self) <= 40 else f"<{len(self)} rows: {', '.join(self.columns)}>"


def predict(*, threads: int = 0, **scenario: Unpack[Scenario]) -> Rows:
    """Page load times by the closed formulas: `roundtrip predict`.

    `threads`: their number, by default that of the CPUs; any number gives the same rows. Ctrl-C ends the run.

    Raises ValueError with the command line's sentence for an unknown name, an invalid value, or more than 10,000,000 rows.

        >>> roundtrip.predict(network="4g", page="visit.har", protocol=["http11-parallel", "http2"]).plot()
    """
    return _run("predict", threads, scenario)


def simulate(*, threads: int = 0, **scenario: Unpack[Scenario]) -> Rows:
    """Page load times by packets in virtual time: `roundtrip simulate`; the same seed gives the same rows.

    `threads`, errors: as `predict`.

        >>> roundtrip.simulate(rtt="10ms..200ms*8", rate="20Mbit", loss=["0%", "1%"], protocol=["http11", "http2"], seed=range(10))
    """
    return _run("simulate", threads, scenario)


def compare(*, threads: int = 0, **scenario: Unpack[Scenario]) -> Rows:
    """The formulas and the simulator on the same scenarios: `roundtrip compare --engine model,simulate`.

    Measuring needs a kernel of its own, so it is the command line's. `threads`, errors: as `predict`.
    """
    return _run("compare", threads, scenario)


def _run(verb: str, threads: int, scenario: Scenario) -> Rows:
    grid = GridArguments(verb, scenario).kernel()
    return Rows(grid.run(0, len(grid), threads))


class GridArguments:
    """The arguments of a grid, which can be pickled, for other processes."""

    def __init__(self, verb: str, scenario: Scenario) -> None:
        if verb == "compare":
            scenario = {"engine": ["model", "simulate"], **scenario}
        self._verb = verb
        self._values, self._pages = _values(scenario)

    def kernel(self) -> KernelGrid:
        """The grid. Raises ValueError with the command line's sentence."""
        return KernelGrid(self._verb, self._values, [page._kernel for page in self._pages])


def _values(scenario: Scenario) -> tuple[list[tuple[str, list[str]]], list[Page]]:
    values: list[tuple[str, list[str]]] = []
    pages: list[Page] = []
    for name, value in scenario.items():
        key = name.replace("_", "-")
        if name != "page":
            values.append((key, _texts(name, value)))
            continue
        for page in [value] if isinstance(value, (str, os.PathLike, Page)) else list(value):  # type: ignore[call-overload]
            if page == "all":
                values.append((key, [page]))
            else:
                # In the order of the arguments, as pages that were read.
                pages.append(page if isinstance(page, Page) else read(page))
    return values, pages


def _texts(name: str, value: object) -> list[str]:
    """The texts of a value, or of each of several."""
    if isinstance(value, str):
        return [value] if name == "network_trace" else value.split(",")
    if isinstance(value, bool):
        return ["on" if value else "off"]
    if isinstance(value, (int, float)):
        return [repr(value)]
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return [text for one in value for text in _texts(name, one.item() if hasattr(one, "item") else one)]
    raise TypeError(f"{name}: {type(value).__name__} is neither a text nor a number; give a text such as '20ms'")
