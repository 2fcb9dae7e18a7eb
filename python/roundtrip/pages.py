"""Pages as graphs: hosts, objects, and what each object waits for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Optional, Tuple, Union

from roundtrip._kernel import KernelPages

# A constructor of `KernelPages` with its arguments, and the index of one of the pages.
Source = Tuple[str, Tuple[Union[str, bytes], ...], Optional[int]]
HAR = (".har", ".har.gz", ".har.zst", ".json", ".json.gz", ".json.zst")


class Page:
    """A page, for `predict`, `simulate` and `compare`; notebooks show its graph. It can be pickled, for other processes."""

    def __init__(self, source: Source) -> None:
        constructor, arguments, index = self._source = source
        pages: KernelPages = getattr(KernelPages, constructor)(*arguments)
        self._kernel = pages if index is None else pages.page(index)

    def __reduce__(self) -> tuple[type[Page], tuple[Source]]:
        return Page, (self._source,)

    @property
    def json(self) -> dict[str, Any]:
        """Hosts, objects and dependencies: the object that `roundtrip page --format json` prints."""
        return json.loads(self._kernel.json())[0]

    @property
    def hosts(self) -> list[dict[str, Any]]:
        """Hosts, the document's first: name, extra round trip (ms), server time (ms), TLS, HTTP/2."""
        return self.json["hosts"]

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Objects in order, with what each waits for; times are in milliseconds, sizes in bytes."""
        return self.json["objects"]

    def _repr_svg_(self) -> str:
        return self._kernel.svg()

    def __repr__(self) -> str:
        return self._kernel.text()


def page(source: Union[str, os.PathLike[str], bytes], number: int | None = None) -> Page:
    """A page from a browser's recording, a TOML file, sizes or a name: `roundtrip page`.

    `source`: the path of a FILE.har (also .gz, .zst), of Chromium's trace (.json) or FILE.toml, a name such as
    `small-cluster`, sizes such as `6651+3883`, or the bytes of a recording. `number`: which of several pages of a recording, from 1.

    Raises ValueError for a source that is not a page, OSError for a file that cannot be read.
    """
    pages = Page(("har", ("page", source), None)) if isinstance(source, bytes) else read(source)
    count = len(pages._kernel)
    if number is None and count > 1:
        raise ValueError(f"the recording has {count} pages; give number=1 to {count}")
    number = 1 if number is None else number
    if not 1 <= number <= count:
        raise ValueError(f"the recording has no page {number}; give 1 to {count}")
    constructor, arguments, _ = pages._source
    return pages if count == 1 else Page((constructor, arguments, number - 1))


def is_file(source: object) -> bool:
    """Whether this names a file, by its ending."""
    return isinstance(source, os.PathLike) or (isinstance(source, str) and source.lower().endswith((*HAR, ".toml")))


def read(source: Union[str, os.PathLike[str]]) -> Page:
    """All pages of a file, or the page of a name or of sizes."""
    if not is_file(source):
        return Page(("named", (str(source),), None))
    path = Path(source)
    name = path.name.split(".har")[0].removesuffix(".toml")
    if path.name.lower().endswith(".toml"):
        return Page(("toml", (name, path.read_text(encoding="utf-8")), None))
    try:
        return Page(("har", (name, path.read_bytes()), None))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
