"""Deprecated: `roundtrip.Asked` is now `roundtrip.Query`."""

from roundtrip._deprecated import alias
from roundtrip.query import Query

__getattr__ = alias(__name__, {"Asked": Query})
