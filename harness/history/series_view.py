"""The view `series`: what can be plotted and searched, one row a series."""

from __future__ import annotations

from harness.history.series import SeriesRow

__all__ = ["SERIES_VIEW", "SeriesRow"]


SERIES_VIEW = """
CREATE VIEW series AS
SELECT series, suite, latest."case" AS "case", case_id, latest.model AS model, latest.variant AS variant,
       latest.device AS device, peer, role, machine_class, metric, unit, points, first_run,
       latest.run AS last_run, latest.value AS last_value
FROM (
    SELECT series, any_value(suite) AS suite, any_value(case_id) AS case_id, any_value(peer) AS peer,
           any_value("role") AS "role", any_value(machine_class) AS machine_class, any_value(metric) AS metric,
           any_value(unit) AS unit, count(*) AS points, arg_min(run, (started, run)) AS first_run,
           max({'started': started, 'run': run, 'case': "case", 'model': model, 'variant': variant,
                'device': device, 'value': "value"}) AS latest
    FROM points
    GROUP BY series
)
"""
