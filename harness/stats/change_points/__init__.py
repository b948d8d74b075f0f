"""Steps and slow drifts in the history of one benchmark; see harness.stats.change_points.find."""
