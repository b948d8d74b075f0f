"""Weights of real models that lie in packages, of which only the one file is read."""

from harness.weights.file import WeightFile

__all__ = ["WeightFile"]
