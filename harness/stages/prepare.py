"""The first half of the line, which `list` and `run` share: suite.toml -> Suite -> [Case].

Everything a suite names is checked here against what is on this machine: builders, plugins, flags, devices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.errors import SuiteError, UsageError
from harness.models.materialize import model_id
from harness.peers.peer import AppliedPeer, apply_peer
from harness.plugins import Applied, apply_plugin
from harness.plugins.chain import Arranged, gives
from harness.records.case import Case
from harness.suite.cases import Selection, Shard, across_toolchains, chain_of, plan_cases, suits, unknown_flags
from harness.suite.devices import Presence, find_devices
from harness.suite.flags import refusal
from harness.suite.load import LoadedSuite, Suite, Variant, load_suite
from harness.text import did_you_mean, shown
from harness.toolchain import Toolchain, compiler_flags, find_toolchain, runtime_flags
from harness.toolchain.tools import flag_name


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A suite that fits the toolchains, and its cases on this machine."""

    loaded: LoadedSuite
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
    def suite(self) -> Suite:
        """The suite itself."""
        return self.loaded.suite

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
    loaded = load_suite(path)
    suite = place.suite(loaded.suite)
    selection = replace(selection, patterns=place.patterns(loaded.suite, selection.patterns))
    loaded = replace(loaded, suite=suite)
    plugins = {
        variant.name: tuple(
            apply_plugin(use.name, use.options, f"{path}: [variants.{variant.name}] plugins") for use in variant.plugins
        )
        for variant in suite.variants
        if variant.plugins
    }
    peers = tuple(apply_peer(peer.name, peer.options, peer.case_label, f"{path}: peers") for peer in suite.peers)
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
            peers=peers,
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
        loaded=loaded,
        toolchains=toolchains,
        plugins=plugins,
        peers={peer.label: peer for peer in peers},
        cases=own,
        devices=devices,
        device_names=names,
        shard=shard,
        groups_elsewhere=len(elsewhere),
    )


def require_name(suite: Path, kind: str, name: str, names: Sequence[str]) -> None:
    """Refuse a name that a suite does not have."""
    if name not in names:
        raise UsageError(f"{suite}: there is no {kind} {name!r}{did_you_mean(name, names)}")


def unknown_to(toolchain: Toolchain, compile_flags: Sequence[str], run_flags: Sequence[str]) -> list[tuple[str, str]]:
    """The flags that a toolchain's tools do not know, each with its tool."""
    names = runtime_flags(toolchain)
    return [
        *((_COMPILER, flag) for flag in unknown_flags(compile_flags, compiler_flags(toolchain))),
        *((_RUNTIME, flag) for flag in run_flags if flag_name(flag) not in names),
    ]


def _with_known_flags(
    suite: Suite,
    cases: Sequence[Case],
    toolchain: Toolchain,
    toolchains: Sequence[Toolchain],
    plugins: Mapping[str, Sequence[Applied]],
) -> tuple[Case, ...]:
    """The cases, without those whose flags only others of the toolchains know: they are skipped.

    Cases that are meant for other releases may have any flag.
    """
    variants = {variant.name: variant for variant in suite.variants}
    checked = []
    for case in cases:
        if case.peer is not None or not suits(variants[case.variant], toolchain.version):
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
                hint = did_you_mean(name, sorted(_names(tool, toolchain)), f"; see {tool} {_HELP[tool]}")
                raise SuiteError(
                    f"{suite.path}: {_giver(suite, variants[case.variant], case.device, plugins, flag)}: "
                    f"{tool} {toolchain.version} knows no flag --{name}{hint}"
                )
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
    if flag in variant.compile_flags:
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
