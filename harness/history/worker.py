"""How a process that searches series begins; imports nothing that would load numpy before its threads are limited."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping


def begin(variables: Mapping[str, str]) -> None:
    """Limit its libraries' threads, and leave Ctrl-C to the parent, since one sentence about it is enough.

    Args:
        variables: Of the environment, which libraries read as they are loaded: many short calls on many threads take
            longer than on one.
    """
    os.environ.update(variables)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
