"""Where the time of a web page or a request goes, and what a change would save.

    import roundtrip

    rows = roundtrip.simulate(rtt="10ms..200ms*8", rate="20Mbit", loss=["0%", "1%"], protocol=["http11", "http2"], seed=range(10))
    pandas.DataFrame.from_arrow(rows)                          # or polars.from_arrow(rows), pyarrow.table(rows)
    rows.plot()                                                # SVG, shown by notebooks
    roundtrip.diagnose("slow.pcapng").findings                 # causes of stalls in a capture
    roundtrip.page("visit.har").objects                        # a recorded page as a graph
    roundtrip.connections("access.log.gz", timeouts=[1, 60])   # connections of a server

The names and values are those of the command line, and the numbers equal the program's exactly. `roundtrip.spark` does the same on
Apache Spark.
"""

from roundtrip._deprecated import alias
from roundtrip.diagnosis import Diagnosis, diagnose
from roundtrip.engines import Rows, Scenario, compare, predict, simulate
from roundtrip.local import connections
from roundtrip.pages import Page, page
from roundtrip.query import Query
from roundtrip.result import Result
from roundtrip.svg import Svg

__all__ = [
    "Diagnosis",
    "Page",
    "Query",
    "Result",
    "Rows",
    "Scenario",
    "Svg",
    "compare",
    "connections",
    "diagnose",
    "page",
    "predict",
    "simulate",
]

__getattr__ = alias(__name__, {"Asked": Query, "Answer": Result})
