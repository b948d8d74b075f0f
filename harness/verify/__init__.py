"""Are a build's outputs right? Asked before any timing."""

from harness.verify.cases import check_cases
from harness.verify.outputs import AnyRunnable, Runnable, RunnablePeer
from harness.verify.reference import References

__all__ = ["AnyRunnable", "References", "Runnable", "RunnablePeer", "check_cases"]
