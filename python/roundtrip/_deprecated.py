"""Former names, for one version."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Mapping


def alias(module: str, names: Mapping[str, type]) -> Callable[[str], Any]:
    """Returns a module's `__getattr__` that resolves former names, with a DeprecationWarning."""

    def resolve(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        current = names[name]
        warnings.warn(f"{module}.{name} is deprecated; use roundtrip.{current.__name__}", DeprecationWarning, stacklevel=2)
        return current

    return resolve
