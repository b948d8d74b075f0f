"""Are a build's outputs right? Asked before any timing."""

from harness.verify.cases import Runnable, check_cases

__all__ = ["Runnable", "check_cases"]
