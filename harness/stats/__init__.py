"""Rounds -> ratios with intervals; pure, on numpy arrays."""
