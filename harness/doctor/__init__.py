"""Telling how good a machine is for measuring: what is there, what is missing, what would make times noisy."""

from harness.doctor.diagnose import diagnose
from harness.doctor.examine import Diagnosis, Finding, Level, examine
from harness.doctor.render import render_json, render_terminal

__all__ = ["Diagnosis", "Finding", "Level", "diagnose", "examine", "render_json", "render_terminal"]
