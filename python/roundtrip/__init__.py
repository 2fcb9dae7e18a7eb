"""Connections of a server, from its access logs: for every keep-alive time-out, in one pass.

The kernel of `roundtrip connections` for pandas and Arrow; `roundtrip.spark` has the same for Apache Spark. The numbers
are the program's, to the last integer.

    import roundtrip
    answer = roundtrip.connections("access.log.gz", timeouts=[1, 5, 15, 60])
    answer.rows.to_pandas()
"""

from roundtrip.answer import Answer
from roundtrip.asked import Asked
from roundtrip.local import connections

__all__ = ["Answer", "Asked", "connections"]
