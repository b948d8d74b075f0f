"""Shares, as the tables write them."""

import math


def percent(share: float, decimals: int = 0) -> str:
    """`12 %`, `0.31 %`; `-` where there is no share."""
    return "-" if math.isnan(share) else f"{share * 100:.{decimals}f} %"


def between(bounds: tuple[float, float]) -> str:
    """`0.10 % to 1.31 %`."""
    return f"{percent(bounds[0], 2)} to {percent(bounds[1], 2)}"
