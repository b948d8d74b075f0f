"""A worker of a peer: the protocol of harness.measure.worker with another engine behind it.

It runs as a module under the harness's own Python, where peers are installed.
"""

from __future__ import annotations

import os
import sys

# Every engine's own idea of how many threads there are. They are read when it, or numpy, is imported.
_THREAD_VARIABLES = (
    "HL_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "TVM_NUM_THREADS",
)


def main() -> None:
    """Take the number of threads from the command line, then answer requests until `quit`."""
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, sys.argv[1]))
    from harness.measure.worker import serve
    from harness.peers.session import PeerTurns

    serve(PeerTurns)


if __name__ == "__main__":
    main()
