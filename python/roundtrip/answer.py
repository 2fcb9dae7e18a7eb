"""Deprecated: `roundtrip.Answer` is now `roundtrip.Result`."""

from roundtrip._deprecated import alias
from roundtrip.result import Result

__getattr__ = alias(__name__, {"Answer": Result})
