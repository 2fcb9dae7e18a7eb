"""Pictures that notebooks show."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Union


class Svg(str):
    """An SVG picture: its text, shown by notebooks."""

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the picture to a file."""
        Path(path).write_text(self, encoding="utf-8")
