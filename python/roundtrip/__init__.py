"""Connections of a server, from its access logs: for every keep-alive timeout, in one pass.

The counting kernel of `roundtrip connections` for pandas and Arrow; `roundtrip.spark` has the same for Apache Spark. The
numbers equal the program's exactly.

    import roundtrip
    result = roundtrip.connections("access.log.gz", timeouts=[1, 5, 15, 60])
    result.rows.to_pandas()
"""

from roundtrip._deprecated import alias
from roundtrip.local import connections
from roundtrip.query import Query
from roundtrip.result import Result

__all__ = ["Query", "Result", "connections"]

__getattr__ = alias(__name__, {"Asked": Query, "Answer": Result})
