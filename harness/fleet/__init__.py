"""Many hosts, one run, on Dask: what a host offers, who may join, what each does; the only room that imports Dask.

Dask is an extra, and this file imports none of it. `processes` are those of a fleet; `connection` is
the asker's side of them; `access` says who may join at all.
"""

from importlib.util import find_spec

from harness.errors import UsageError

__all__ = ["COMPILE_TIMEOUT_S", "LOST_AFTER_S", "require_extra"]

# The longest that a compile may take on a host, whatever a run allows; and for how long a host may be silent. Both are
# what holds unless the user says otherwise.
COMPILE_TIMEOUT_S, LOST_AFTER_S = 3600.0, 60.0


def require_extra() -> None:
    """See that what a fleet needs is installed; before anything else of this room is imported."""
    missing = [package for package in ("distributed", "cryptography") if find_spec(package) is None]
    if missing:
        raise UsageError(f"a fleet needs {' and '.join(missing)}; run pip install 'iree-harness[fleet]'")
