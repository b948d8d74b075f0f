"""Counting events: the mechanics on software events, which every Linux has; hardware events where there are any."""

from __future__ import annotations

import errno
import json
import mmap
import os
import platform
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness import process
from harness.measure import counters
from harness.measure.counters import Counters, Event, explain_refusal, open_event, unavailable_reason

TASK_CLOCK = Event("task_clock_ns", 1, 1)
PAGE_FAULTS = Event("page_faults", 1, 2)
NO_SUCH_EVENT = Event("no_such_event", 1, 999)

real = pytest.mark.skipif(
    unavailable_reason((TASK_CLOCK,)) is not None, reason="this system lets nobody count even software events"
)


def touch_pages(pages: int) -> None:
    """Cause one page fault a page."""
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(pages):
        memory[page * mmap.PAGESIZE] = 1
    memory.close()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def software() -> Iterator[Counters]:
    made = Counters((TASK_CLOCK, PAGE_FAULTS))
    yield made
    made.close()


@real
def test_counts_what_happens_between_two_readings_and_since_the_start(software: Counters) -> None:
    before = software.read()
    touch_pages(1000)
    after = software.read()
    assert 1000 <= after["page_faults"] - before["page_faults"] < 1200
    assert after["task_clock_ns"] > before["task_clock_ns"]
    software.start()
    assert software.read()["page_faults"] < 100
    touch_pages(500)
    assert 500 <= software.read()["page_faults"] < 700


@real
def test_a_thread_is_counted_if_it_starts_later_and_also_when_it_has_ended(software: Counters) -> None:
    may_begin, touched, may_end = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        may_begin.wait(10)
        touch_pages(1000)
        touched.set()
        may_end.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    late = Counters((PAGE_FAULTS,))
    late.start()
    may_begin.set()
    assert touched.wait(10)
    assert software.read()["page_faults"] >= 1000
    may_end.set()
    thread.join()
    assert software.read()["page_faults"] >= 1000
    assert late.read()["page_faults"] < 100
    late.close()


@real
def test_an_event_that_the_machine_refuses_is_left_out() -> None:
    some = Counters((PAGE_FAULTS, NO_SUCH_EVENT, TASK_CLOCK))
    assert some.names == tuple(some.read()) == ("page_faults", "task_clock_ns")
    some.close()
    none = Counters((NO_SUCH_EVENT,))
    none.start()
    assert (none.names, none.read()) == ((), {})
    none.close()
    assert unavailable_reason((NO_SUCH_EVENT, TASK_CLOCK)) is None


@real
def test_close_gives_back_every_descriptor_and_may_be_repeated() -> None:
    before = open_descriptors()
    opened = Counters((TASK_CLOCK, PAGE_FAULTS))
    assert open_descriptors() == before + 2
    opened.close()
    opened.close()
    assert open_descriptors() == before
    assert (opened.names, opened.read()) == ((), {})


@real
def test_descriptors_do_not_reach_programs_that_are_started() -> None:
    descriptor = open_event(TASK_CLOCK)
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


def scripted(monkeypatch: pytest.MonkeyPatch, readings: Sequence[tuple[int, int, int]]) -> Counters:
    """Counters of one event whose descriptor yields these (count, enabled_ns, running_ns)."""
    reader, writer = os.pipe()
    os.write(writer, b"".join(struct.pack("=QQQ", *reading) for reading in readings))
    os.close(writer)
    monkeypatch.setattr(counters, "open_event", lambda _event: reader)
    return Counters((TASK_CLOCK,))


@pytest.mark.parametrize(
    ("started", "read", "expected"),
    [
        (None, (300, 3000, 1000), {"task_clock_ns": 900}),  # never started: the whole time
        ((100, 1000, 1000), (350, 2000, 2000), {"task_clock_ns": 250}),  # it had a counter all the time
        ((100, 1000, 1000), (350, 2000, 1500), {"task_clock_ns": 500}),  # half of the time
        ((100, 1000, 500), (350, 2000, 1500), {"task_clock_ns": 250}),  # it shared earlier, not since the start
        ((100, 1000, 500), (100, 2000, 500), {}),  # never since the start: unknown, not 0
        ((100, 1000, 1000), (100, 1000, 1000), {"task_clock_ns": 0}),  # no time went by
    ],
)
def test_counts_of_shared_counters_are_scaled_to_the_time_since_the_start(
    monkeypatch: pytest.MonkeyPatch,
    started: tuple[int, int, int] | None,
    read: tuple[int, int, int],
    expected: dict[str, int],
) -> None:
    made = scripted(monkeypatch, [reading for reading in (started, read) if reading])
    if started:
        made.start()
    assert made.read() == expected
    made.close()


def test_hardware_counters_count_or_say_why_not() -> None:
    reason = unavailable_reason()
    made = Counters()
    if reason is None:
        assert set(made.names) <= {"instructions", "cycles", "cache_misses", "branch_misses"}
        made.start()
        touch_pages(100)
        assert made.read().get("instructions", 1) > 0
    else:
        assert made.names == ()
        assert " " in reason
    made.close()


@pytest.mark.parametrize(
    ("system", "machine", "reason"),
    [
        ("darwin", "x86_64", "hardware counters are read through Linux's perf_event_open, and this is not Linux"),
        (
            "linux",
            "riscv64",
            "hardware counters are read on x86_64 and aarch64 only, and this machine is riscv64",
        ),
    ],
)
def test_elsewhere_there_are_none_and_the_reason_says_so(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, reason: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert unavailable_reason() == reason
    assert Counters((TASK_CLOCK,)).names == ()


FORBIDDEN = "hardware counters are forbidden"
IN_CONTAINER = f"{FORBIDDEN} here, as containers do by default: allow the call perf_event_open"
NONE_HERE = "this (virtual) machine exposes no hardware counters"


@pytest.mark.parametrize(
    ("code", "paranoid", "expected"),
    [
        (
            errno.EACCES,
            3,
            f"{FORBIDDEN}: kernel.perf_event_paranoid is 3; set it to 2 with: sudo sysctl kernel.perf_event_paranoid=2",
        ),
        (errno.EPERM, 2, IN_CONTAINER),
        (errno.EPERM, None, IN_CONTAINER),
        (errno.ENOENT, 2, NONE_HERE),
        (errno.EOPNOTSUPP, 2, NONE_HERE),
        (errno.ENOSYS, None, "this kernel was built without performance events"),
        (errno.EMFILE, 2, "hardware counters cannot be opened: Too many open files"),
    ],
)
def test_a_refusal_is_explained(code: int, paranoid: int | None, expected: str) -> None:
    assert explain_refusal(code, paranoid=paranoid) == expected


WORKER = """
import json, runpy, sys
made = runpy.run_path(sys.argv[1])
Event, Counters = made["Event"], made["Counters"]
counters = Counters((Event("task_clock_ns", 1, 1),))
counters.start()
sum(range(100_000))
print(json.dumps([counters.read(), made["unavailable_reason"](), "harness" in sys.modules]))
counters.close()
"""


@real
def test_loads_by_path_where_nothing_is_installed() -> None:
    alone = [sys.executable, "-I", "-S", "-c", WORKER, counters.__file__]
    done = process.run(alone, limits=process.Limits(seconds=30))
    assert done.ok, done.stderr
    counts, reason, harness_loaded = json.loads(done.stdout)
    assert counts["task_clock_ns"] > 0
    assert reason == unavailable_reason()
    assert not harness_loaded
