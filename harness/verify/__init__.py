"""Are a build's outputs right? Asked before any timing."""

from harness.verify.cases import check_cases
from harness.verify.reference import References
from harness.verify.runnable import AnyRunnable, Runnable, RunnablePeer

__all__ = ["AnyRunnable", "References", "Runnable", "RunnablePeer", "check_cases"]
