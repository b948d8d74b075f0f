"""The tables of docs/fleet.md: every number in them is measured, none is typed."""

import statistics
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone

from benchmarks.fleet.faults import HOSTS, LOST_AFTER_S, RETURN_S, SIZE, Trial
from benchmarks.fleet.real import Real, speedup
from benchmarks.fleet.simulated import Simulated
from benchmarks.fleet.sizes import KIB
from harness.machine.environment import processor
from harness.report.markdown import blocks, table
from harness.toolchain.host_cpu import environment_here

MOST_WAITED, LEAST_SPEEDUP = 0.05, 1.8


def render_simulated(found: Sequence[Simulated]) -> str:
    """What the engine takes, by the number of hosts."""
    first = found[0]
    size, work = first.size, first.work
    rows = [
        [
            f"{each.hosts:,}",
            f"{each.size.cases:,}",
            f"{each.wall_s:,.0f} s",
            _percent(each.waits.waited),
            _percent(each.waits.after),
            f"{(each.took.sent_bytes + each.took.fetched_bytes) / 1e6:,.0f} MB",
            f"{each.wire_bytes / 1e6:,.0f} MB",
            f"{each.took.planned_bytes / 1e6:,.0f} MB",
            f"{each.took.peak_bytes / 1e6:,.0f} MB",
            f"{each.scheduler_bytes / 1e6:,.0f} MB",
            *(f"{1e3 * of_a_case_s:.1f} ms" for of_a_case_s in each.cpu_of_a_case_s),
            _percent(each.machine),
        ]
        for each in found
    ]
    worst = max(each.waits.waited for each in found)
    heads = ["hosts", "cases", "run", "hosts wait", "done before the end", "files", "network", "asker, planned"]
    heads += ["asker, most", "scheduler", "a case: asker", "a case: scheduler", "a case: hosts", "machine busy"]
    return blocks(
        _where(),
        f"Each host compiles {work.cores} cases at once, {0.5 * work.compile_s:g} to {1.5 * work.compile_s:g} s each, "
        f"and then measures: a group of {size.variants} cases is checked in {work.check_s * size.variants:g} s, takes "
        f"{work.reference_s * size.variants:g} s of iree-benchmark-module, and {size.generations} generations of "
        f"{work.start_s + size.generation_s:g} s. A module has {work.module_bytes // KIB} KiB, a program "
        f"{size.program_bytes // KIB} KiB, its argument {size.argument_bytes // KIB} KiB, an output "
        f"{work.output_bytes // KIB} KiB. So a case is {work.of_a_case_s(size):.1f} s of a host's work. The asker, its "
        "run folder and the scheduler are the harness's own; a host is a Dask worker that waits as long as the work "
        "would take. All of them share this machine, and where its cores are busy, hosts wait for them too: “machine "
        "busy” says how near they are to it.",
        table(heads, rows, numbers=[True] * len(heads)),
        "“Hosts wait” is the share of the time up to a host's last piece of work in which it does less than it could: "
        "a core that compiles nothing as long as any compile of the run has not begun, and later a host that does "
        f"nothing at all. The goal is at most {_percent(MOST_WAITED)}; the most is {_percent(worst)}. “Done before the "
        "end” is the time after a host's last piece of work, in which other hosts end theirs. “Files” are programs, "
        "modules and outputs; “network” is all that goes between the processes, and each file goes twice, since the "
        "scheduler passes it on. Memory is the process's own: of the asker once all is planned, and at most. “A case” "
        "is CPU time of the whole run divided by the number of cases, with what hosts say of themselves while they "
        "wait; that of “hosts” is Dask's own on all of them, which would be on machines of theirs.",
    )


def render_faults(trials: Sequence[Trial]) -> str:
    """What became of everything while hosts were killed."""
    audits = [trial.audit for trial in trials if trial.audit is not None]
    faults = Counter(fault.partition(":")[0] for trial in trials for fault in trial.faults)
    cells = {
        "trials": len(trials),
        "that came to their end": len(audits),
        "faults": sum(faults.values()),
        "generations planned": sum(found.generations for found in audits),
        "there, whole and once": sum(found.whole for found in audits),
        "reported by host and reason": sum(found.reported for found in audits),
        "**lost**": sum(len(found.lost) for found in audits),
        "**there twice**": sum(len(found.twice) for found in audits),
        "groups that moved": sum(found.moved for found in audits),
        "runs that went on in another process": sum(trial.resumed for trial in trials),
    }
    rows = [[what, f"{count:,}"] for what, count in cells.items()]
    longest, median = max(trial.seconds for trial in trials), statistics.median(trial.seconds for trial in trials)
    happened = "; ".join(f"{kind} {count} times" for kind, count in faults.most_common())
    return blocks(
        f"Each trial is a run of {SIZE.cases} cases in {SIZE.models} groups, {SIZE.generations} generations each, over "
        f"{len(HOSTS)} hosts that meet over TLS: processes of the harness with their nannies, whose compilers and "
        f"measurements are simulated. A host is given up after {LOST_AFTER_S:g} s, and its groups move {RETURN_S:g} s "
        f"later. Each has two to five faults at random ({happened}). A trial takes {median:.0f} s, the longest "
        f"{longest:.0f} s. The run folder is then read back, as every command reads it.",
        table(("what", "how many"), rows, numbers=[False, True]),
    )


def render_real(found: Sequence[Real]) -> str:
    """How much sooner two workers have compiled."""
    rows = [
        [
            str(workers),
            f"{statistics.median(real.compile_s for real in own):.1f} s",
            " ".join(f"{real.compile_s:.1f}" for real in own),
            f"{statistics.median(real.compilers_s for real in own):.1f} s",
        ]
        for workers in (1, 2)
        if (own := [real for real in found if real.workers == workers])
    ]
    return blocks(
        f"suites/smoke.toml, {found[0].builds} builds, with empty caches, on real workers of one core each, "
        f"{len(found) // 2} times in turns:",
        table(("workers", "until all is compiled", "each, in seconds", "of compilers"), rows, numbers=[True] * 4),
        f"Two are {speedup(list(found)):.2f} times as fast as one; the goal is {LEAST_SPEEDUP:g}.",
    )


def _where() -> str:
    environment = environment_here()
    machine, cpu = environment["machine"], environment["cpu"]
    kind = "virtual machine" if machine.get("virtual") else "machine"
    now = datetime.now(timezone.utc)
    return (
        f"Measured on {now:%Y-%m-%d} on {processor(environment) or 'unknown'}, {cpu.get('usable_cores', '?')} "
        f"cores ({kind}, {machine.get('distribution', machine.get('system', ''))})."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
