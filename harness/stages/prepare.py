"""The first half of the line, which `list` and `run` share: suite.toml -> Suite -> [Case]; and the context of a run.

Everything a suite names is checked here against what is on this machine: builders, plugins, flags, devices.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import SuiteError, UsageError
from harness.models.materialize import ModelArtifact, model_id
from harness.models.model import Model
from harness.peers.peer import AppliedPeer, apply_peer
from harness.plugins import Applied, apply_plugin
from harness.plugins.chain import Arranged, gives
from harness.process import PAST_TIME
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, Lost, Run
from harness.stages.options import RunOptions
from harness.store.evidence import Evidence, is_expected
from harness.store.run_directory import RunDirectory
from harness.suite.cases import Selection, Shard, across_toolchains, chain_of, plan_cases, suits, unknown_flags
from harness.suite.devices import Presence, find_devices
from harness.suite.flags import refusal
from harness.suite.load import Device, Suite, Variant, load_suite
from harness.text import did_you_mean, one_line, plural, shown
from harness.toolchain import Toolchain, compiler_flags, find_toolchain, runtime_flags
from harness.toolchain.tools import flag_name

_Item = TypeVar("_Item", Model, Variant, Device)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A suite that fits the toolchains, and its cases on this machine."""

    suite: Suite
    # The toolchains of the cases. The first one also makes the models, so that every toolchain compiles the same text,
    # and the others are compared with it.
    toolchains: tuple[Toolchain, ...]
    plugins: dict[str, tuple[Applied, ...]]  # By variant name, its plugins in order with their options
    peers: dict[str, AppliedPeer]  # With their options, by label
    cases: tuple[Case, ...]
    # What the suite's devices are here, with their driver's version, by name; those that are there
    devices: dict[str, str]
    # What tells a device from others of its kind, by the device's name; processors are left out
    device_names: dict[str, str] = field(default_factory=dict)
    shard: Shard | None = None  # The shard that the cases are; None: they are the whole plan
    groups_elsewhere: int = 0  # How many more groups the run's budget has to serve, in other shards

    @property
    def toolchain(self) -> Toolchain:
        """The first toolchain."""
        return self.toolchains[0]

    def toolchain_of(self, case: Case) -> Toolchain:
        """The toolchain that a case is run under."""
        return next(toolchain for toolchain in self.toolchains if toolchain.version == case.toolchain)

    def plugins_of(self, case: Case) -> tuple[Applied, ...]:
        """The plugins of a case, in order, with their options."""
        return self.plugins.get(case.variant, ())

    def arranged_for(self, case: Case) -> Arranged:
        """What the plugins of a case come to."""
        variant = next(variant for variant in self.suite.variants if variant.name == case.variant)
        device = next(device for device in self.suite.devices if device.name == case.device)
        return chain_of(self.suite, variant, device, self.plugins_of(case))


class DevicePlace:
    """Where a suite's devices and peers are: on this machine, unless a fleet says otherwise."""

    def suite(self, suite: Suite) -> Suite:
        """The suite as that place has it: a device may be there more than once."""
        return suite

    def patterns(self, suite: Suite, patterns: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002 (a fleet needs it)
        """Patterns on the names of a suite's cases, for the suite as that place has it."""
        return patterns

    def devices(self, suite: Suite, toolchain: Toolchain) -> Mapping[str, Presence]:
        """Each of the suite's devices by name, or why it is not there."""
        return find_devices(suite, toolchain)

    def missing(self, peer: AppliedPeer) -> str | None:
        """Why a peer cannot be used there, as a sentence; None: it can."""
        return peer.missing


_HERE = DevicePlace()


def prepare(
    path: Path,
    selection: Selection,
    toolchains: Sequence[Toolchain] = (),
    others: Sequence[Toolchain] = (),
    shard: Shard | None = None,
    place: DevicePlace = _HERE,
) -> Prepared:
    """Load a suite and plan its cases; nothing is compiled, and models are not built."""
    written = load_suite(path)
    suite = place.suite(written)
    selection = replace(selection, patterns=place.patterns(written, selection.patterns))
    plugins = {
        variant.name: tuple(
            apply_plugin(use.name, use.options, f"{path}: [variants.{variant.name}] plugins") for use in variant.plugins
        )
        for variant in suite.variants
        if variant.plugins
    }
    peers = tuple(apply_peer(peer.name, peer.options, peer.case_label, f"{path}: peers") for peer in suite.peers)
    tables = [each.model_copy(update={"options": peer.options}) for each, peer in zip(suite.peers, peers, strict=True)]
    missing_peers = {peer.label: reason for peer in peers if (reason := place.missing(peer)) is not None}
    model_ids = {model.name: model_id(model, path) for model in suite.models}
    toolchains = tuple(toolchains) or (find_toolchain(),)
    plans: list[tuple[Case, ...]] = []
    devices: dict[str, str] = {}
    names: dict[str, str] = {}
    for toolchain in toolchains:
        found = place.devices(suite, toolchain)
        cases = plan_cases(
            suite,
            model_ids=model_ids,
            toolchain=toolchain.version,
            plugins=plugins,
            devices=found,
            peers=tables,
            missing_peers=missing_peers,
            selection=selection,
        )
        plans.append(_with_known_flags(suite, cases, toolchain, (*toolchains, *others), plugins))
        devices = {name: device.facts for name, device in found.items() if device.missing is None} | devices
        names = {name: device.name for name, device in found.items() if device.name} | names
    cases = across_toolchains(plans)
    own = tuple(case for case in cases if shard is None or shard.has(case))
    elsewhere = {case.group for case in cases if case.skip is None} - {case.group for case in own}
    return Prepared(
        suite=suite,
        toolchains=toolchains,
        plugins=plugins,
        peers={peer.label: peer for peer in peers},
        cases=own,
        devices=devices,
        device_names=names,
        shard=shard,
        groups_elsewhere=len(elsewhere),
    )


def find_named(suite: Path, kind: str, name: str, items: Sequence[_Item]) -> _Item:
    """The model, variant or device of a suite that has this name."""
    for item in items:
        if item.name == name:
            return item
    raise UsageError(f"{suite}: there is no {kind} {name!r}{did_you_mean(name, [item.name for item in items])}")


def unknown_to(toolchain: Toolchain, compile_flags: Sequence[str], run_flags: Sequence[str]) -> list[tuple[str, str]]:
    """The flags that a toolchain's tools do not know, each with its tool."""
    names = runtime_flags(toolchain)
    return [
        *((_COMPILER, flag) for flag in unknown_flags(compile_flags, compiler_flags(toolchain))),
        *((_RUNTIME, flag) for flag in run_flags if flag_name(flag) not in names),
    ]


def require_known(option: str, flags: Sequence[str], toolchains: Sequence[Toolchain]) -> None:
    """Refuse an option with flags of the compiler of which one is unknown to all toolchains, or may not be given."""
    for flag in flags:
        if why := refusal(flag, at_run=False):
            raise UsageError(f"{option}: --{flag_name(flag)} {why}; remove it")
        if all(unknown_to(toolchain, [flag], ()) for toolchain in toolchains):
            raise UsageError(f"{option}: {_knows_no(_COMPILER, toolchains[0], flag_name(flag))}")


def _knows_no(tool: str, toolchain: Toolchain, name: str) -> str:
    hint = did_you_mean(name, sorted(_names(tool, toolchain)), f"; see {tool} {_HELP[tool]}")
    return f"{tool} {toolchain.version} knows no flag --{name}{hint}"


def _with_known_flags(
    suite: Suite,
    cases: Sequence[Case],
    toolchain: Toolchain,
    toolchains: Sequence[Toolchain],
    plugins: Mapping[str, Sequence[Applied]],
) -> tuple[Case, ...]:
    """The cases, without those whose flags only others of the toolchains know: they are skipped."""
    variants = {variant.name: variant for variant in suite.variants}
    checked = []
    for case in cases:
        if case.peer is not None or not suits(variants[case.variant], toolchain.version):  # it may have any flag
            checked.append(case)
            continue
        for at_run, flags in ((False, case.compile_flags), (True, case.run_flags)):
            for flag in flags:
                giver = f"{suite.path}: {_giver(suite, variants[case.variant], case.device, plugins, flag)}"
                if "\0" in flag:  # no command line can have it
                    raise SuiteError(f"{giver}: --{shown(flag_name(flag))} has a zero byte; remove it")
                if (why := refusal(flag, at_run=at_run)) and " plugins: " not in giver:
                    raise SuiteError(f"{giver}: --{flag_name(flag)} {why}; remove it")
        lacking = ""
        for tool, flag in unknown_to(toolchain, case.compile_flags, case.run_flags):
            name = flag_name(flag)
            if not any(name in _names(tool, other) for other in toolchains):
                giver = _giver(suite, variants[case.variant], case.device, plugins, flag)
                raise SuiteError(f"{suite.path}: {giver}: {_knows_no(tool, toolchain, name)}")
            lacking = lacking or f"{tool} {toolchain.version} knows no flag --{name}"
        checked.append(replace(case, skip=case.skip or lacking or None))
    return tuple(checked)


_COMPILER, _RUNTIME = "iree-compile", "iree-benchmark-module"
_HELP = {_COMPILER: "--help-hidden", _RUNTIME: "--help"}


def _names(tool: str, toolchain: Toolchain) -> frozenset[str]:
    return compiler_flags(toolchain) if tool == _COMPILER else runtime_flags(toolchain)


def _giver(suite: Suite, variant: Variant, device: str, plugins: Mapping[str, Sequence[Applied]], flag: str) -> str:
    """The table and key that give a flag to a case: the variant's own, its flag sets', its plugins', the device's."""
    table = f"[variants.{variant.name}]"
    if flag in variant.flags:
        return f"{table} flags"
    if flag in variant.run_flags:
        return f"{table} run_flags"
    for flag_set in variant.flag_sets:
        for key, flags in (("compile", flag_set.compile), ("run", flag_set.run)):
            if flag in flags:
                return f"{table} flagsets: [flagsets.{flag_set.name}] {key}"
    for applied in plugins.get(variant.name, ()):
        if gives(applied, flag):
            return f"{table} plugins: {applied.name}"
    compile_flags = next(table.compile_flags for table in suite.devices if table.name == device)
    return f"[devices.{device}] {'compile_flags' if flag in compile_flags else 'run_flags'}"


_LONGEST = 400
# How the message of a failure begins where another case timed out; that one's note counts it.
NOT_TRIED = "not tried, since "


class FailureNotes:
    """Notes on the progress of a run; the same words are printed once."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._first: dict[tuple[str, str], str] = {}

    def model(self, name: str, failure: Failure, cases: Sequence[Case]) -> None:
        """A model could not be made."""
        if unexpected := sum(not is_expected(case, failure) for case in cases):
            self._note(name, failure, unexpected)

    def case(self, case: Case, failure: Failure, others: int = 0) -> None:
        """A case failed; nothing is said of what the suite expects."""
        if not is_expected(case, failure) and not failure.message.startswith(NOT_TRIED):
            self._note(case.name, failure, others)

    def _note(self, name: str, failure: Failure, others: int) -> None:
        consequence = f"; {plural(others, 'case fails', 'cases fail')} with it" if others else ""
        first = self._first.setdefault((failure.stage, failure.message), name)
        message = one_line(failure.message)[:_LONGEST] if first == name else f"as {first}"
        self._progress.note(f"Failed ({failure.stage}): {name}: {message}{consequence}")


def is_timeout(failure: Failure) -> bool:
    """Whether a tool was stopped because it took too long."""
    return PAST_TIME in failure.message


class GivenUp:
    """Cases that are not tried since another variant of their model, device and toolchain timed out."""

    def __init__(self, *, keep_going: bool) -> None:
        self._keep_going = keep_going
        self._first: dict[tuple[str, str], tuple[str, str]] = {}  # a case, and the option that gives it more

    def note(self, case: Case, failure: Failure | None) -> bool:
        """Take notice of how a case ended; whether the others of its model and device are given up from now on."""
        if self._keep_going or failure is None or not is_timeout(failure):
            return False
        option = "--compile-timeout" if failure.stage == "compile" else "--call-timeout"
        self._first.setdefault((case.group, case.toolchain), (case.name, option))
        return True

    def refusal(self, case: Case, stage: str) -> Failure | None:
        """Why a case is not tried at this stage; None: it is."""
        first, option = self._first.get((case.group, case.toolchain), (case.name, ""))
        if first == case.name:
            return None
        return Failure(
            stage=stage,
            message=f"{NOT_TRIED}{first} timed out; give it more with {option}, or try every case with --keep-going",
        )


def unchecked(case: Case, failure: Failure) -> Check:
    """The check of a case that was not run for it."""
    return Check(
        case=case.name, against="", command=(), relative_tolerance=0.0, absolute_tolerance=0.0, failure=failure
    )


# --- What the stages of a run share: the user's choices, the planned cases, and where results go ---


class Done(Evidence):
    """What is done of a run: its builds and checks so far; of all else what it had before it was interrupted."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        # Timed seconds and rounds, by group and generation
        self.generations: dict[tuple[str, int], tuple[float, int]] = {}
        for timed in run.rounds:
            seconds, rounds = self.generations.get((timed.group, timed.generation), (0.0, 0))
            timed_s = sum(turn.wall_ns for turn in timed.turns) / 1e9
            self.generations[timed.group, timed.generation] = (seconds + timed_s, rounds + 1)

    def has_all_of(self, case: Case, settings: Mapping[str, Any]) -> bool:
        """Whether nothing is left of a case, since it was measured to the end, or has failed."""
        build, check = self.builds.get(case.name), self.checks.get(case.name)
        has_failed = any(record is not None and record.failure is not None for record in (build, check))
        if has_failed or case.name in self.lost:
            return True
        if not settings.get("measure", True):
            return check is not None
        return (case.group, int(settings["generations"]) - 1) in self.generations


@dataclass(frozen=True, kw_only=True)
class Context:
    """One run under way."""

    prepared: Prepared
    artifacts: Mapping[str, ModelArtifact | Failure]  # Each model, or why it could not be made, by name
    options: RunOptions
    directory: RunDirectory
    done: Done
    progress: Progress
    failures: FailureNotes  # What is printed of them as they happen
    given_up: GivenUp  # What is not tried since another case timed out
    with_reference: bool = True  # Whether iree-benchmark-module is asked of each case, which says what memory it takes

    @property
    def made(self) -> dict[str, ModelArtifact]:
        """The models that could be made, by name."""
        return {name: item for name, item in self.artifacts.items() if isinstance(item, ModelArtifact)}

    def failed(self, case: Case, failure: Failure, untried: Iterable[Case] = ()) -> None:
        """Say that a case failed, and how many of those that were not tried yet go with it."""
        others = 0
        if self.given_up.note(case, failure):
            others = sum((other.group, other.toolchain) == (case.group, case.toolchain) for other in untried)
        self.failures.case(case, failure, others)


def failed_at(case: Case, message: str, builds: dict[str, Build], checks: dict[str, Check]) -> Build | Check | Lost:
    """What says that a case has failed, at the stage that it has come to; builds and checks have it then."""
    if case.peer is None and case.name not in builds:
        failure = Failure(stage="compile", message=message)
        return builds.setdefault(case.name, Build(case=case.name, command=(), cache_key="", failure=failure))
    if case.name not in checks:
        return checks.setdefault(case.name, unchecked(case, Failure(stage="verify", message=message)))
    return Lost(case=case.name, generation=0, failure=Failure(stage="measure", message=message))
