"""Ending a process that serves until somebody ends it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextlib.asynccontextmanager
async def stopped_by_signal() -> AsyncIterator[asyncio.Event]:
    """An event that ctrl-C, SIGTERM and SIGHUP set, instead of what they do elsewhere."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


async def until(work: Awaitable[object], stop: asyncio.Event) -> bool:
    """Wait for something, or for the end; whether it was the former."""
    task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            return False
        task.result()
        return True
    finally:
        for each in (task, stopped):
            each.cancel()
