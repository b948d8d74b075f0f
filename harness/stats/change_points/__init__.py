"""Steps and slow drifts in the history of one benchmark; see harness.stats.change_points.find."""

from harness.stats.change_points.find import ChangePoint, find_changes

__all__ = ["ChangePoint", "find_changes"]
