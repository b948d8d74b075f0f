"""Are a build's outputs right? Asked before any timing."""

from harness.verify.cases import AnyRunnable, Right, Runnable, RunnablePeer, check_cases

__all__ = ["AnyRunnable", "Right", "Runnable", "RunnablePeer", "check_cases"]
