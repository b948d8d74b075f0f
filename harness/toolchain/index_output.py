"""What pip and uv print where a package index does not give what was asked for.

Nothing that they print is shown as it is: it can name a company's package index.
"""

from __future__ import annotations

import re

DISK_FULL = re.compile(r"No space left on device|os error 28\b|Errno 28\b|not enough space on the disk|quota exceeded")
UNREACHABLE = re.compile(
    r"Could not fetch URL \S+ (?:connection error|There was a problem)|connection broken by|tim(?:ed|e) ?out"
    r"|Failed to (?:fetch|download)|error sending request"
    r"|network (?:was|is) (?:disabled|unreachable)|name resolution|Name or service not known|ProxyError|SSLError",
    re.IGNORECASE,
)
NO_INDEX = re.compile(r"from versions: none|was not found in the|index lookups were disabled")
