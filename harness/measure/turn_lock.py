"""One harness at a time measures on a machine: two would slow each other on the same core without a word."""

from __future__ import annotations

import getpass
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from harness.cache import held


def only_one_measures(on_wait: Callable[[], None]) -> AbstractContextManager[None]:
    """Wait until no other harness of this user measures on this machine.

    Args:
        on_wait: Called once if another one is measuring now.
    """
    return held(Path(tempfile.gettempdir()) / f"iree-harness-{getpass.getuser()}-measures.lock", on_wait)
