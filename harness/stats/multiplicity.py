"""Many rows, one comparison: p-values corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.stats.pairing import FloatArray


def adjust_p(p_values: Sequence[float]) -> FloatArray:
    """Benjamini and Hochberg's adjusted p-values (1995), in the order given.

    Rows whose adjusted value is at most q are those that their step-up procedure rejects at level q: of all rows called
    different, at most a share q is expected to be wrong; where no row differs, the chance of calling any is at most q.
    The values never fall when others rise, so a row once rejected stays so while samples of others come in.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if not p.size:
        return p
    order = np.argsort(-p, kind="stable")
    steps = p[order] * p.size / np.arange(p.size, 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.minimum.accumulate(steps), 1.0)
    return adjusted
