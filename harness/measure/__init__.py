"""[Build] -> [Round]: resident workers, timed turns, fresh generations."""

from harness.measure.generation import measure_generation
from harness.measure.values import Group, Loadable, Settings

__all__ = ["Group", "Loadable", "Settings", "measure_generation"]
