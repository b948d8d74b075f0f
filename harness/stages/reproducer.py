"""What a case does on two sides -> a folder that shows it without this harness: program, inputs and reproduce.sh.

Where a compile fails, the script compiles alone; where an output is wrong or a call fails, it asks iree-run-module,
with the right outputs beside it; else it times both sides with iree-benchmark-module.
"""

import shlex
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from filecmp import cmp
from pathlib import Path

import numpy as np
from packaging.version import Version

from harness.cache import cache_root
from harness.compare.pairs import Side
from harness.compare.samplers import CacheMiss, find_model
from harness.compile import BuildCache
from harness.compile.iree_compile import MODEL_FILE
from harness.errors import RunError, UsageError
from harness.explain.summary_sentence import Labels, change_sentence
from harness.machine.environment import processor
from harness.models.inputs import bf16_bits
from harness.models.materialize import files_by_name
from harness.records.case import Case
from harness.records.comparison import Row
from harness.records.run import Build, Check, Failure
from harness.report.repro import translated
from harness.store.evidence import find_failure
from harness.store.files import writing
from harness.text import one_line
from harness.toolchain.find import COMPILER_PACKAGE, RUNTIME_PACKAGE
from harness.toolchain.own import is_own
from harness.verify.outputs import load_array
from harness.verify.reference import ADVICE, kept_reference

# What the harness asks for on its own behalf; here the tool compares outputs itself, and times are for people.
_LEFT_OUT = ("--output=", "--benchmark_", "--time_unit", "--print_statistics")
_REPEATED = ("--benchmark_repetitions=3", "--benchmark_min_time=0.3s")
_NIGHTLIES = "--find-links https://iree.dev/pip-release-links.html "
_WIDTH = 100
_THRESHOLDS = {"float16": "f16", "float32": "f32", "float64": "f64"}


@dataclass(frozen=True, kw_only=True)
class Half:
    """One of the two sides, with what was recorded of its case."""

    name: str  # `base` or `head`: of its module and, in capitals, of the variable that has the folder of its tools
    label: str  # What tells it from the other one
    case: Case
    build: Build
    call: tuple[str, ...] = ()  # Flags of the runtime's tools; () where it was not called
    check: Check | None = None
    failure: Failure | None = None
    files: Mapping[str, Path]  # By the names that they have in its place
    place: str = ""  # A folder, with a slash, where the two have other files of one name


def write_reproducer(
    folder: Path,
    *,
    base: tuple[Side, Case] | None,
    head: tuple[Side, Case],
    measured: Row | None = None,
    cause: str = "",
) -> Path:
    """Write what shows how a case differs on two sides; the script.

    Without a base it shows what is wrong with the head's. `measured` is the latency row of the two, and `cause` where
    its time goes, as `summary_sentence.cause_of` says it.
    """
    alone = f"IREE {one_line(head[1].toolchain)}"
    labels = labels_of_cases(base[1], head[1]) if base is not None else (alone, alone)
    sides = [("base", base, labels[0]), ("head", head, labels[1])]
    halves = [_half(name, *of, label) for name, of, label in sides if of is not None]
    wrong = next((half.check for half in reversed(halves) if half.check is not None and half.check.reproducer), None)
    refused = cache_root() / wrong.reproducer if wrong is not None else Path()
    if wrong is not None:  # maybe with other inputs than the suite's
        inputs = {file.name: file for file in refused.glob("input*")}
        halves = [
            replace(half, files={name: inputs.get(name, file) for name, file in half.files.items()}) for half in halves
        ]
    first, last = halves[0].files, halves[-1].files
    if not all(cmp(first[name], last[name], shallow=False) for name in {*first} & {*last}):
        halves = [replace(half, place=f"{half.name}/") for half in halves]
    with writing(folder, "choose another folder"):
        for half in halves:
            (folder / half.place).mkdir(parents=True, exist_ok=True)
            for name, file in half.files.items():
                shutil.copyfile(file, folder / half.place / name)
        expected = _write_expected(folder, refused, wrong) if wrong is not None else ()
        script = folder / "reproduce.sh"
        text = script_text(halves, _said(halves, measured, labels, cause, *head), expected)
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)
    return script


def labels_of_cases(base: Case, head: Case) -> Labels:
    """What tells two cases apart: their releases, else their variants, else which is which."""
    if base.toolchain != head.toolchain:
        return f"IREE {one_line(base.toolchain)}", f"IREE {one_line(head.toolchain)}"
    return (base.variant, head.variant) if base.variant != head.variant else ("the base", "the head")


def name_of_cases(base: Case, head: Case) -> str:
    """What two cases have in common, by name."""
    return f"{head.model}/{head.variant}@{head.device}" if base.variant == head.variant else head.group


def _said(
    halves: Sequence[Half], measured: Row | None, labels: Labels, cause: str, side: Side, case: Case
) -> list[str]:
    """What the script shows, a sentence each, and where it was found."""
    name = name_of_cases(halves[0].case, case)
    failed = [(half.label, half.failure) for half in halves if half.failure is not None]
    said = [f"{name} under {label}: {failure.message.removesuffix(ADVICE)}." for label, failure in failed]
    if measured is not None and measured.base_value is not None:
        said.insert(0, change_sentence(replace(measured, case=name), labels, cause))
    where = processor(side.run.environment_of(case)) or "a processor that the run does not name"
    return [*said, f"Found on {where}, {side.run.header.started[:10]}."]


# --- What was recorded -> one half; and what is right ---


def _half(name: str, side: Side, case: Case, label: str) -> Half:
    evidence, builds = side.evidence, BuildCache(cache_root())
    build = evidence.builds.get(case.name)
    if build is None or not build.command:
        raise UsageError(f"{side.label}: {case.name} was not compiled by iree-compile, so no plain command shows it")
    works = build.failure is None
    if case.plugins and not works:
        raise UsageError(
            f"{side.label}: {case.name} failed with plugins; `harness export --variant` writes its program"
        )
    names = (case.name, side.stand_ins.get(case.name, case).name)
    records = [of.get(each) for of in (evidence.checks, evidence.references) for each in names]
    command = next((record.command for record in records if record is not None and record.command), ())
    try:
        program, arguments, weights = find_model(side, case)
        if works and (build.rewritten or build.files) and builds.find(build.cache_key, case.name) is None:
            raise CacheMiss(f"the program of {case.name} in {side.label} is no longer in the cache")
    except CacheMiss as error:
        again = shlex.join(["harness", "run", side.run.header.suite])
        raise RunError(f"{error}; make the run again with `{again}`") from None
    files = {MODEL_FILE: program, **files_by_name([each.file for each in arguments], weights.values())}
    if works:
        files |= {MODEL_FILE: builds.program(build) or program, **{file.name: file for file in builds.files(build)}}
    return Half(
        name=name,
        label=label,
        case=case,
        build=build,
        call=tuple(flag for flag in command[1:] if not flag.startswith(_LEFT_OUT)),
        check=evidence.checks.get(case.name),
        failure=find_failure(case, evidence, timed=True),
        files=files,
    )


def _write_expected(folder: Path, refused: Path, check: Check) -> tuple[str, ...]:
    """Write the right outputs as iree-run-module reads them; its flags, or () where only parts of them are known."""
    right = kept_reference(check.reference) if check.reference else None
    flags: list[str] = []
    for position in range(len([*refused.glob("right*.npy")])):
        ours, true = (load_array(refused / f"{which}{position}.npy") for which in ("refused", "right"))
        if ours.shape != true.shape:
            return ()
        if right is not None and right.kinds[position] == "bf16":
            file, shape = f"expected{position}.bin", "".join(f"{size}x" for size in true.shape)
            (folder / file).write_bytes(bf16_bits(true).tobytes())
            flags.append(f"--expected_output={shape}bf16=@{file}")
            continue
        np.save(folder / f"expected{position}.npy", true.astype(ours.dtype))
        flags.append(f"--expected_output=@expected{position}.npy")
        if kind := _THRESHOLDS.get(ours.dtype.name):
            allowed = refused / f"allowed{position}.npy"
            bounds = load_array(allowed) if allowed.is_file() else check.relative_tolerance * np.abs(true)
            bounds = np.add(bounds, check.absolute_tolerance + np.finfo(np.float64).tiny, dtype=np.float64)
            beyond = np.abs(np.subtract(ours, true, dtype=np.float64)) / bounds  # The tool takes one bound: the worst's
            flags.append(f"--expected_{kind}_threshold={bounds.flat[np.argmax(beyond)]:.3g}")
    return tuple(dict.fromkeys(flags))


# --- The script; pure ---


def script_text(halves: Sequence[Half], said: Sequence[str], expected: Sequence[str] = ()) -> str:
    """What it shows, both toolchains, the commands of either side, and what to compare."""
    more: Sequence[str] = ()
    if any(half.build.failure is not None or not half.call for half in halves):
        tool, compare = "", "what iree-compile says"
    elif any(half.check is not None and half.check.failure is not None for half in halves):
        tool, more, compare = "iree-run-module", expected, "what iree-run-module says of the outputs"
    else:
        tool, more, compare = "iree-benchmark-module", _REPEATED, "the medians of real_time"
    lines = ["#!/bin/sh"]
    for sentence in said:
        lines += textwrap.wrap(one_line(sentence), _WIDTH, initial_indent="# ", subsequent_indent="# ")
    lines += [
        "#",
        "# Run it with `sh reproduce.sh`: it installs IREE's releases with pip, into environments beside itself.",
        "# For tools of your own give their folders, as in `BASE=$HOME/iree-build/tools HEAD=... sh reproduce.sh`.",
        "set -e",
        'cd "$(dirname "$0")"',
    ]
    for half in halves:
        lines += ["", *_toolchain(half, halves[0])]
    calls: list[str] = []
    for half in halves:
        module, files = f"{half.name}.vmfb", half.build.files
        title = f"echo {shlex.quote(f'== {half.label}')}"
        compiling = translated(half.build.command, half.place, module, files)
        lines += ["", title, _line(half, compiling, may_fail=half.build.failure is not None)]
        command = [tool, *translated(half.call, half.place, module, files), *more]
        if tool == "iree-run-module":
            lines.append(_line(half, command, may_fail=True))
        elif tool:
            calls += [title, _line(half, command, may_fail=False)]
    if calls:
        lines += ["", "# In turns, each time in a process of its own, so that a busy minute meets both."]
        lines += ["for turn in 1 2 3; do", textwrap.indent("\n".join(calls), "  "), "done"]
    conclusion = textwrap.fill(one_line(" ".join([f"Compare {compare} above.", *said])), _WIDTH)
    return "\n".join([*lines, "", f"echo {shlex.quote(conclusion)}", ""])


def _toolchain(half: Half, first: Half) -> list[str]:
    """Lines that say where a side's tools are; a release is installed, once."""
    variable, release = half.name.upper(), one_line(half.case.toolchain)
    if half is not first and half.case.toolchain == first.case.toolchain:
        return [f"{variable}=${{{variable}:-${first.name.upper()}}}"]
    if is_own(release):
        return [f': "${{{variable}:?give the folder of the tools of IREE {release}, which nobody released}}"']
    pins = shlex.join(f"{package}=={release}" for package in (COMPILER_PACKAGE, RUNTIME_PACKAGE))
    where = _NIGHTLIES if Version(release).is_prerelease else ""
    return [
        f'if [ -z "${variable}" ]; then',
        f'  "${{PYTHON:-python3}}" -m venv iree-{release}',
        f"  iree-{release}/bin/python -m pip install --quiet {where}{pins}",
        f"  {variable}=iree-{release}/bin",
        "fi",
    ]


def _line(half: Half, command: Sequence[str], *, may_fail: bool) -> str:
    """A command line, folded between its arguments; where it may fail, the script says so and goes on."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in half.case.environment.items()]
    words = [*variables, f'"${half.name.upper()}"/{command[0]}', *map(shlex.quote, command[1:])]
    whole = " ".join(word.replace(" ", "\0") for word in words)
    folded = textwrap.wrap(whole, _WIDTH - 2, break_long_words=False, break_on_hyphens=False, subsequent_indent="  ")
    line = " \\\n".join(folded).replace("\0", " ")
    return f'{line} ||\n  echo "{command[0]} ended with status $?"' if may_fail else line
