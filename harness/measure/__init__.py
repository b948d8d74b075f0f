"""[Build] -> [Round]: resident workers, timed turns, fresh generations."""

from harness.machine.processor import last_core
from harness.measure.generation import Calibration, measure_generation
from harness.measure.session import Group, Loadable, LoadableModule, Settings

__all__ = ["Calibration", "Group", "Loadable", "LoadableModule", "Settings", "last_core", "measure_generation"]
