"""The kernel, in Rust: python/src. Only this package calls it."""

from typing import final

import pyarrow as pa

# Requests; rows or lines that gave none, by the place of their reason; answers without a size.
Read = tuple[pa.RecordBatch, list[int], int]

@final
class Question:
    """What is asked, and how a table's rows are read."""

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
    ) -> Question: ...
    @property
    def longest_ms(self) -> int: ...
    @property
    def one_pass(self) -> bool: ...
    def columns(self, schema: pa.Schema) -> list[str]: ...
    def rows(self, batch: pa.RecordBatch) -> Read: ...

@final
class Lines:
    """Reads lines, block after block."""

    def __new__(cls, question: Question, log_format: str | None, beginning: bytes) -> Lines: ...
    def block(self, block: bytes) -> Read: ...
    def column(self, batch: pa.RecordBatch) -> Read: ...

@final
class Slice:
    """A stretch of time; requests before `from_ms` only say which connections are open."""

    def __new__(cls, question: Question, from_ms: int) -> Slice: ...
    def push(self, batch: pa.RecordBatch) -> None: ...
    def finish(self) -> bytes: ...

def reasons() -> list[str]: ...
def merge(question: Question, partials: list[bytes]) -> bytes: ...
def rows(question: Question, partial: bytes) -> pa.RecordBatch: ...
def curve(question: Question, partial: bytes) -> pa.RecordBatch: ...
