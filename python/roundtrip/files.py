"""Files of logs and tables: found by path, and read as blocks of whole lines or as batches."""

from __future__ import annotations

import bz2
import glob
import os
import warnings
import zlib
from pathlib import Path
from typing import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet

# Bytes of one call of the kernel, which make the cost of a call negligible.
BLOCK = 4 << 20
# Compressed bytes of one decompression: the output is seldom more than sixteen times as long.
COMPRESSED_BLOCK = 256 << 10
# Bytes of a log from which its format is detected.
BEGINNING = 64 << 10
# Maximum length of a line; the kernel rejects a line that is longer by one byte.
MAX_LINE_BYTES = 1 << 20


def find(path: str | os.PathLike[str]) -> list[Path]:
    """Returns the files of a path: itself, all below a directory, or those that match a pattern; sorted by name."""
    target = Path(path)
    if target.is_dir():
        found = [file for file in target.rglob("*") if file.is_file()]
    elif target.exists() or not glob.has_magic(str(path)):
        return [target]
    else:
        found = [Path(file) for file in glob.glob(str(path)) if os.path.isfile(file)]
    if not found:
        raise FileNotFoundError(f"{path}: no such file; name another log")
    return sorted(found)


def table(path: Path) -> Table | None:
    """Opens the table in a file; None if the file is not a table."""
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic[:4] == b"PAR1":
        return Parquet(path)
    if magic == b"ARROW1":
        return Arrow(pa.ipc.open_file(pa.memory_map(str(path))))
    if magic[:4] == b"\xff\xff\xff\xff":
        return Arrow(pa.ipc.open_stream(pa.memory_map(str(path))))
    return None


class Parquet:
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        self._file = pa.parquet.ParquetFile(path)
        self.schema: pa.Schema = self._file.schema_arrow

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Reads these columns, batch by batch."""
        return self._file.iter_batches(columns=columns)


class Arrow:
    """An Arrow file or stream."""

    def __init__(self, reader: pa.RecordBatchFileReader | pa.RecordBatchStreamReader) -> None:
        self._reader = reader
        self.schema: pa.Schema = reader.schema

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Reads these columns, batch by batch."""
        table = self._reader.read_all()
        return iter(table.select(columns).to_batches())


Table = Parquet | Arrow


def blocks(path: Path) -> Iterator[bytes]:
    """Reads a log as blocks of whole lines, decompressed. A damaged file is read up to the damage, with a warning."""
    pending, is_skipping = b"", False
    for chunk in _up_to_damage(path):
        if is_skipping:
            # The rest of the line that was too long.
            end = chunk.find(b"\n")
            if end < 0:
                continue
            chunk, is_skipping = chunk[end:], False
        end = chunk.rfind(b"\n") + 1
        if end > 0:
            yield pending + chunk[:end]
            pending = chunk[end:]
        else:
            pending += chunk
        if len(pending) > MAX_LINE_BYTES:
            pending, is_skipping = pending[: MAX_LINE_BYTES + 1], True
    if pending:
        yield pending


def _up_to_damage(path: Path) -> Iterator[bytes]:
    try:
        yield from _decompressed(path)
    except (OSError, EOFError, zlib.error) as error:
        warnings.warn(f"{path} could not be read to its end ({error}); the part before is counted", stacklevel=2)


def _decompressed(path: Path) -> Iterator[bytes]:
    """Reads the file's bytes; the first ones identify the compression."""
    with open(path, "rb") as file:
        magic = file.read(2)
    if magic == b"\x1f\x8b":
        # A window of 32 KiB, within gzip's header and trailer.
        yield from _members(path, lambda: zlib.decompressobj(wbits=16 + 15))
    elif magic == b"BZ":
        yield from _members(path, bz2.BZ2Decompressor)
    else:
        compression = "zstd" if magic == b"\x28\xb5" else None
        with pa.input_stream(str(path), compression=compression) as stream:
            while chunk := stream.read(COMPRESSED_BLOCK if compression else BLOCK):
                yield chunk


def _members(path: Path, decompressor: Callable[[], zlib._Decompress | bz2.BZ2Decompressor]) -> Iterator[bytes]:
    """Decompresses concatenated members as one stream, as parallel compressors write them."""
    member = decompressor()
    with open(path, "rb") as file:
        while compressed := file.read(COMPRESSED_BLOCK):
            while compressed:
                if member.eof:
                    member = decompressor()
                yield member.decompress(compressed)
                compressed = member.unused_data
    if not member.eof:
        raise EOFError("it is truncated")
