"""Telling how good a machine is for measuring: what is there, what is missing, what would make times noisy."""

from harness.doctor.examine import Diagnosis, Finding, Level, devices_of, diagnose
from harness.doctor.render import diagnosis_page, render_json

__all__ = ["Diagnosis", "Finding", "Level", "devices_of", "diagnose", "diagnosis_page", "render_json"]
