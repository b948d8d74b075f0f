"""Whether a user's statement only reads.

DuckDB can lock statements into folders, and there they may still write. A history is somebody's measurements, so what
would write is refused before it is executed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

ONLY_READS = "a query only reads: give one SELECT"

_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?:ANALYZE\s+|\([^()]*\)\s*)*(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
# A PIVOT that looks its columns up is several statements to DuckDB, as is a COPY of one.
_PIVOT = re.compile(r"[\s(]*(PIVOT|SELECT|FROM|WITH)\b", re.IGNORECASE)


def only_reads(connection: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Whether it is one statement that reads; DESCRIBE, SUMMARIZE, SHOW and FROM are SELECT to DuckDB.

    Raises:
        duckdb.Error: It is no SQL.
    """
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        return False
    kind = statements[0].type.name
    if kind == "EXPLAIN":  # with ANALYZE it executes what it explains
        explained = _EXPLAIN.fullmatch(sql)
        return explained is not None and only_reads(connection, explained["rest"])
    return kind == "SELECT" or (kind == "MULTI" and _PIVOT.match(sql) is not None)
