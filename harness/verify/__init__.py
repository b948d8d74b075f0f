"""Are a build's outputs right? Asked before any timing."""

from harness.verify.cases import AnyRunnable, Runnable, RunnablePeer, check_cases

__all__ = ["AnyRunnable", "Runnable", "RunnablePeer", "check_cases"]
