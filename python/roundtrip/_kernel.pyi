"""The counting kernel, in Rust (python/src). Private to this package."""

from typing import final

import pyarrow as pa

# Requests; rows or lines without a request, by the index of their reason; responses without a size.
Read = tuple[pa.RecordBatch, list[int], int]

@final
class KernelQuery:
    """Validated query, and the interpretation of a table's rows."""

    def __new__(
        cls,
        *,
        timeouts_ms: list[int],
        per_client: list[int],
        thresholds: list[int],
        rule: str,
        durations: bool,
        header_bytes: int | None,
        missing_size: str,
        client_prefix: tuple[int, int] | None,
        client_field: str | None,
        columns: list[tuple[str, str]],
    ) -> KernelQuery: ...
    @property
    def longest_ms(self) -> int: ...
    @property
    def one_pass(self) -> bool: ...
    def columns(self, schema: pa.Schema) -> list[str]: ...
    def rows(self, batch: pa.RecordBatch) -> Read: ...

@final
class Lines:
    """Reader of lines, block by block."""

    def __new__(cls, query: KernelQuery, log_format: str | None, beginning: bytes) -> Lines: ...
    def block(self, block: bytes) -> Read: ...
    def column(self, batch: pa.RecordBatch) -> Read: ...

@final
class Slice:
    """Slice of time; requests before `from_ms` only determine the open connections."""

    def __new__(cls, query: KernelQuery, from_ms: int) -> Slice: ...
    def push(self, batch: pa.RecordBatch) -> None: ...
    def finish(self) -> bytes: ...

def reasons() -> list[str]: ...
def merge(query: KernelQuery, partials: list[bytes]) -> bytes: ...
def rows(query: KernelQuery, partial: bytes) -> pa.RecordBatch: ...
def curve(query: KernelQuery, partial: bytes) -> pa.RecordBatch: ...
