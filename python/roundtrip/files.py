"""Files of logs and of tables: which there are, and what is in them, as blocks of whole lines or as batches."""

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

# The kernel reads so many bytes at once: enough that calling it costs nothing.
BLOCK = 4 << 20
# So much is unpacked at once, packed: seldom more than sixteen times that comes out.
PACKED_BLOCK = 256 << 10
# So much of a log says what format it is in.
BEGINNING = 64 << 10
# Longer lines are not read; the kernel says so of a line that is longer by one.
LONGEST_LINE = 1 << 20


def named(path: str | os.PathLike[str]) -> list[Path]:
    """The files that a path names: itself, all below a folder, or those that a pattern fits. In order of name."""
    there = Path(path)
    if there.is_dir():
        found = [file for file in there.rglob("*") if file.is_file()]
    elif there.exists() or not glob.has_magic(str(path)):
        return [there]
    else:
        found = [Path(file) for file in glob.glob(str(path)) if os.path.isfile(file)]
    if not found:
        raise FileNotFoundError(f"{path}: there is no file; name another log")
    return sorted(found)


def table(path: Path) -> Table | None:
    """The table in a file, if there is one."""
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
    """A Parquet file, of which only some columns are read."""

    def __init__(self, path: Path) -> None:
        self._file = pa.parquet.ParquetFile(path)
        self.schema: pa.Schema = self._file.schema_arrow

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The batches, of some of the columns."""
        return self._file.iter_batches(columns=columns)


class Arrow:
    """An Arrow file or stream."""

    def __init__(self, reader: pa.RecordBatchFileReader | pa.RecordBatchStreamReader) -> None:
        self._reader = reader
        self.schema: pa.Schema = reader.schema

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The batches, of some of the columns."""
        table = self._reader.read_all()
        return iter(table.select(columns).to_batches())


Table = Parquet | Arrow


def blocks(path: Path) -> Iterator[bytes]:
    """A log as blocks of whole lines, unpacked. What cannot be read to its end is read as far as it goes."""
    begun, passing_over = b"", False
    for some in _as_far_as_it_goes(path):
        if passing_over:
            # From where the line was cut to its end.
            end = some.find(b"\n")
            if end < 0:
                continue
            some, passing_over = some[end:], False
        end = some.rfind(b"\n") + 1
        if end > 0:
            yield begun + some[:end]
            begun = some[end:]
        else:
            begun += some
        if len(begun) > LONGEST_LINE:
            begun, passing_over = begun[: LONGEST_LINE + 1], True
    if begun:
        yield begun


def _as_far_as_it_goes(path: Path) -> Iterator[bytes]:
    try:
        yield from _unpacked(path)
    except (OSError, EOFError, zlib.error) as error:
        warnings.warn(f"{path} could not be read to its end ({error}); what came before is counted", stacklevel=2)


def _unpacked(path: Path) -> Iterator[bytes]:
    """The file's bytes; how it is packed is known by its first ones."""
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
            while some := stream.read(PACKED_BLOCK if compression else BLOCK):
                yield some


def _members(path: Path, unpacker: Callable[[], zlib._Decompress | bz2.BZ2Decompressor]) -> Iterator[bytes]:
    """What follows one another in a file is one, as parallel compressors write it."""
    member = unpacker()
    with open(path, "rb") as file:
        while packed := file.read(PACKED_BLOCK):
            while packed:
                if member.eof:
                    member = unpacker()
                yield member.decompress(packed)
                packed = member.unused_data
    if not member.eof:
        raise EOFError("it is cut off")
