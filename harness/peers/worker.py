"""A worker of a peer: the protocol of harness.measure.worker with another engine behind it.

It runs as a module under the harness's own Python, where peers are installed, with the variables in its environment
that hold engines to a number of threads.
"""

from __future__ import annotations

from harness.measure.worker import serve
from harness.peers.session import PeerTurns

if __name__ == "__main__":
    serve(PeerTurns)
