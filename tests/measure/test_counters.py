"""Counting events: the mechanics on software events, which every Linux has; hardware events where there are any."""

import errno
import mmap
import os
import platform
import re
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.measure import counters
from harness.measure.counters import Counters, Event, explain_refusal, open_event, unavailable_reason
from harness.measure.session import only_one_measures

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


@real
def test_a_thread_is_counted_if_it_starts_later_and_also_when_it_has_ended() -> None:
    may_begin, touched, may_end = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        may_begin.wait(10)
        touch_pages(1000)
        touched.set()
        may_end.wait(10)

    early, thread = Counters((PAGE_FAULTS,)), threading.Thread(target=work)
    thread.start()
    late = Counters((PAGE_FAULTS,))
    may_begin.set()
    assert touched.wait(10)
    assert early.read()["page_faults"] >= 1000
    may_end.set()
    thread.join()
    assert early.read()["page_faults"] >= 1000
    assert late.read()["page_faults"] < 100


@real
def test_an_event_that_the_machine_refuses_is_left_out() -> None:
    assert [*Counters((PAGE_FAULTS, NO_SUCH_EVENT, TASK_CLOCK)).read()] == ["page_faults", "task_clock_ns"]
    assert unavailable_reason((NO_SUCH_EVENT, TASK_CLOCK)) is None
    descriptor = open_event(TASK_CLOCK)
    assert not os.get_inheritable(descriptor), "programs that are started have none"
    os.close(descriptor)


@pytest.mark.parametrize(
    ("started", "read", "expected"),
    [
        ((100, 1000, 1000), (350, 2000, 2000), {"task_clock_ns": 250}),  # it had a counter all the time
        ((100, 1000, 1000), (350, 2000, 1500), {"task_clock_ns": 500}),  # half of the time
        ((100, 1000, 500), (100, 2000, 500), {}),  # never since the start: unknown, not 0
    ],
)
def test_counts_of_shared_counters_are_scaled_to_the_time_since_the_start(
    monkeypatch: pytest.MonkeyPatch,
    started: tuple[int, int, int],
    read: tuple[int, int, int],
    expected: dict[str, int],
) -> None:
    """One event whose descriptor yields these (count, enabled_ns, running_ns)."""
    reader, writer = os.pipe()
    os.write(writer, b"".join(struct.pack("=QQQ", *reading) for reading in (started, read)))
    os.close(writer)
    monkeypatch.setattr(counters, "open_event", lambda _event: reader)
    assert Counters((TASK_CLOCK,)).read() == expected
    os.close(reader)


def test_hardware_counters_count_or_say_why_not() -> None:
    reason = unavailable_reason()
    made = Counters()
    touch_pages(100)
    counts = made.read()
    assert bool(counts) == (reason is None)
    assert counts.get("instructions", 1) > 0


def test_elsewhere_there_are_none_and_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    reason = "hardware counters are read on x86_64 and aarch64 only, and this machine is riscv64"
    assert unavailable_reason() == reason
    assert Counters((TASK_CLOCK,)).read() == {}


FORBIDDEN = "hardware counters are forbidden"
IN_CONTAINER = f"{FORBIDDEN} here, as containers do by default: allow the call perf_event_open"


SYSCTL = "set it to 2 with: sudo sysctl kernel.perf_event_paranoid=2"


@pytest.mark.parametrize(
    ("code", "paranoid", "expected"),
    [
        (errno.EACCES, 3, f"{FORBIDDEN}: kernel.perf_event_paranoid is 3; {SYSCTL}"),
        (errno.EPERM, 2, IN_CONTAINER),
        (errno.EOPNOTSUPP, 2, "this (virtual) machine exposes no hardware counters"),
        (errno.ENOSYS, None, "this kernel was built without performance events"),
        (errno.EMFILE, 2, "hardware counters cannot be opened: Too many open files"),
    ],
)
def test_a_refusal_is_explained(code: int, paranoid: int | None, expected: str) -> None:
    assert explain_refusal(code, paranoid=paranoid) == expected


@pytest.fixture
def another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    """Another harness that measures, until it is closed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["harness", "run", "a b.toml"])
    with ExitStack() as other:
        other.enter_context(only_one_measures(print))
        yield other


def test_a_second_one_waits_and_says_so(another: ExitStack) -> None:
    notes = []

    def note(text: str) -> None:
        notes.append(text)
        another.close()

    with only_one_measures(note):
        (text,) = notes
    assert re.fullmatch(
        rf"Another harness is measuring on this machine since [0-9:]{{8}}: pid {os.getpid()}, harness run 'a b.toml'; "
        r"waiting for it \(--no-wait measures beside it, which disturbs both\)",
        text,
    )


def test_one_that_does_not_wait_measures_beside_it_whatever_it_says_of_itself(
    another: ExitStack, tmp_path: Path
) -> None:
    (file,) = tmp_path.glob("*-measures.json")
    for text in ("", "[]", '{"since": "then"}'):
        file.write_text(text)
        notes: list[str] = []
        with only_one_measures(notes.append, wait=False):
            beside = "this one measures beside it, so figures of both are disturbed"
            assert notes == [f"Another harness is measuring on this machine; {beside}"]
