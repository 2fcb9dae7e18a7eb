"""Parameters of counting: plain values that other processes can unpickle."""

from __future__ import annotations

import difflib
import math
import warnings
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from roundtrip._kernel import KernelQuery

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class Flags(TypedDict, total=False):
        """The fields of `Query`, as keywords."""

        timeouts: float | timedelta | Sequence[float | timedelta]
        per_client: int | Sequence[int]
        thresholds: int | Sequence[int]
        rule: str
        durations: bool
        header_bytes: int | str
        missing_size: str
        log_format: str | None
        columns: Mapping[str, str]
        client_prefix: int | tuple[int, int] | None
        client_field: str | None


TIMEOUTS_S = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 18, 20, 25, 30, 40, 50, 60)
# Default bits of an IPv6 address that identify a site (RFC 4291, section 2.5.4).
SITE_BITS = 64


@dataclass(frozen=True)
class Query:
    """Flags of `roundtrip connections`, with the same names and defaults.

    timeouts: keep-alive timeouts, in seconds or as timedelta: whole milliseconds, up to a week.
    per_client: maximum number of connections of a client, 1 to 64.
    thresholds: with DHTTP, responses from this size in bytes are sent over TCP; 0 is plain HTTP.
    rule: connection that a request takes: "least-recently-used", "first-created" or "idle-first".
    durations: whether a connection is busy for the logged duration of its response.
    header_bytes: bytes of headers added to each response, or "by-status".
    missing_size: responses of unknown size: "leave-out", or count them as "zero" or "large".
    log_format: format of lines: "clf", "combined", "w3c", "cloudfront", "json", "alb", or a format string of nginx or Apache;
        None detects it.
    columns: columns of a table: {"time": "ts", "client": "ip", "size": "n", "status": "code", "taken": "s"}; others are
        found by their usual names.
    client_prefix: leading bits of an address that identify a client: 24, or (24, 64) with those of IPv6.
    client_field: field or column that identifies the client.
    """

    timeouts: float | timedelta | Sequence[float | timedelta] = TIMEOUTS_S
    per_client: int | Sequence[int] = (1, 3)
    thresholds: int | Sequence[int] = (0, 1460, 4096)
    rule: str = "least-recently-used"
    durations: bool = False
    header_bytes: int | str = "by-status"
    missing_size: str = "leave-out"
    log_format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    client_prefix: int | tuple[int, int] | None = None
    client_field: str | None = None

    @classmethod
    def of(cls, query: Query | None, flags: Mapping[str, Any]) -> Query:
        """Returns a query with some fields replaced. Raises TypeError for an unknown keyword."""
        known = [field.name for field in fields(cls)]
        if "asked" in flags:
            warnings.warn("the argument `asked` is deprecated; use `query`", DeprecationWarning, stacklevel=3)
            flags = dict(flags)
            query = flags.pop("asked") or query
        for name in flags:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                help = f"did you mean `{near[0]}`?" if near else f"choose one of {', '.join(known)}"
                raise TypeError(f"unknown argument `{name}`; {help}")
        return replace(query or cls(), **flags)

    def kernel(self) -> KernelQuery:
        """Returns the kernel's query. Raises ValueError for an invalid value."""
        return KernelQuery(
            timeouts_ms=[_milliseconds(timeout) for timeout in _as_iterable(self.timeouts)],
            per_client=[_whole("per_client", limit) for limit in _as_iterable(self.per_client)],
            thresholds=[_whole("thresholds", size) for size in _as_iterable(self.thresholds)],
            rule=self.rule,
            durations=bool(self.durations),
            header_bytes=None if self.header_bytes == "by-status" else _whole("header_bytes", self.header_bytes),
            missing_size=self.missing_size,
            client_prefix=self._prefix(),
            client_field=self.client_field,
            columns=list(self.columns.items()),
        )

    def _prefix(self) -> tuple[int, int] | None:
        if self.client_prefix is None:
            return None
        bits = [_whole("client_prefix", bit_count) for bit_count in _as_iterable(self.client_prefix)]
        if len(bits) > 2 or not bits or max(bits) > 128:
            raise ValueError(f"client_prefix: {self.client_prefix!r} is not a prefix; give bits such as 24, or (24, 64)")
        return (bits[0], bits[1] if len(bits) == 2 else SITE_BITS)


def _as_iterable(values: Any) -> Iterable[Any]:
    return [values] if isinstance(values, (Real, timedelta, str)) else values


def _milliseconds(timeout: Any) -> int:
    value = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    seconds = float(value) if isinstance(value, Real) else math.nan
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"timeouts: {timeout!r} is not a timeout; give seconds such as 15 or 0.5")
    milliseconds = round(seconds * 1000)
    if abs(seconds * 1000 - milliseconds) > 1e-6 or milliseconds > 604_800_000:
        raise ValueError(f"timeouts: {timeout!r} is out of range; give whole milliseconds, up to a week")
    return milliseconds


def _whole(name: str, value: Any) -> int:
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else -1
    if not 0 <= number < 1 << 63:
        raise ValueError(f"{name}: {value!r} is not a whole number from 0")
    return number
