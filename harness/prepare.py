"""The first half of the line, which `list` and `run` share: suite.toml -> Suite -> [Case].

Everything a suite names is checked here against what is on this machine: builders, plugins, flags, devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.devices import DeviceProbe, driver_of, probe_driver
from harness.errors import SuiteError
from harness.models.identity import model_id
from harness.plan import Case, Selection, plan_cases, unknown_flags
from harness.plan.flags import flag_name
from harness.plugins import Plugin, load_plugin, registered_plugins
from harness.process import Limits
from harness.suite import LoadedSuite, load_suite
from harness.suite.toml_file import did_you_mean
from harness.suite.values import Suite
from harness.toolchain import Toolchain, compiler_flags, find_toolchain, runtime_flags

_PROBE_LIMITS = Limits(seconds=60)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A suite that is known to fit the toolchain, and its cases on this machine."""

    loaded: LoadedSuite
    toolchain: Toolchain
    plugins: dict[str, Plugin]
    cases: tuple[Case, ...]

    @property
    def suite(self) -> Suite:
        """The suite itself."""
        return self.loaded.suite


def prepare(path: Path, selection: Selection, toolchain: Toolchain | None = None) -> Prepared:
    """Load a suite and plan its cases; nothing is compiled, and models are not built.

    Raises:
        SuiteError: The suite is wrong, or names flags, builders or plugins that are not here.
        ToolchainError: There is no usable toolchain.
        UsageError: The selection matches no case.
    """
    loaded = load_suite(path)
    suite = loaded.suite
    plugins = _plugins(suite)
    model_ids = {model.name: model_id(model, path) for model in suite.models}
    toolchain = toolchain or find_toolchain()
    cases = plan_cases(
        suite,
        model_ids=model_ids,
        toolchain=toolchain.version,
        plugins=plugins,
        unavailable=_unavailable(suite, toolchain),
        selection=selection,
    )
    _check_flags(path, suite, cases, toolchain)
    return Prepared(loaded=loaded, toolchain=toolchain, plugins=plugins, cases=cases)


def _plugins(suite: Suite) -> dict[str, Plugin]:
    known = registered_plugins()
    for variant in suite.variants:
        for name in variant.plugins:
            if name not in known:
                hint = did_you_mean(name, known) or "; no installed package registers a plugin"
                raise SuiteError(f"{suite.path}: [variants.{variant.name}] plugins: there is no plugin {name!r}{hint}")
    return {name: load_plugin(name) for variant in suite.variants for name in variant.plugins}


def _unavailable(suite: Suite, toolchain: Toolchain) -> dict[str, str]:
    """Why devices of the suite are not there, as sentences, by device name."""
    probes = {driver: probe_driver(toolchain, driver, limits=_PROBE_LIMITS) for driver in _drivers(suite)}
    reasons = {device.name: _reason(probes[driver_of(device.uri)], device.uri) for device in suite.devices}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _drivers(suite: Suite) -> Sequence[str]:
    return tuple(dict.fromkeys(driver_of(device.uri) for device in suite.devices))


def _reason(probe: DeviceProbe, uri: str) -> str | None:
    if probe.reason is not None:
        return f"{probe.reason}; {probe.advice}" if probe.advice else probe.reason
    wanted = uri.partition("://")[2]
    if not wanted or wanted.isdigit():
        there = not wanted or int(wanted) < len(probe.devices)
    else:
        there = any(device.uri == uri for device in probe.devices)
    if there:
        return None
    return f"no device {uri}; {probe.driver} has {', '.join(device.uri for device in probe.devices)}"


def _check_flags(path: Path, suite: Suite, cases: Sequence[Case], toolchain: Toolchain) -> None:
    compile_known, run_known = compiler_flags(toolchain), runtime_flags(toolchain)
    unknown = [
        ("iree-compile", "--help-hidden", case, flag, compile_known)
        for case, flag in unknown_flags(cases, compile_known)
    ] + [
        ("iree-benchmark-module", "--help", case, flag, run_known)
        for case in cases
        for flag in case.run_flags
        if flag_name(flag) not in run_known
    ]
    for tool, help_flag, case, flag, known in unknown:
        hint = did_you_mean(flag_name(flag), sorted(known), f"; see {tool} {help_flag}")
        raise SuiteError(
            f"{path}: {_giver(suite, case, flag)}: {tool} {toolchain.version} knows no flag --{flag_name(flag)}{hint}"
        )


def _giver(suite: Suite, case: Case, flag: str) -> str:
    """The table that gives a flag to a case: a flag set, the variant, or the device."""
    variant = next(one for one in suite.variants if one.name == case.variant)
    for flag_set in variant.flag_sets:
        if flag in (*flag_set.compile, *flag_set.run):
            return f"[variants.{variant.name}] flag set {flag_set.name}"
    if flag in variant.compile_flags:
        return f"[variants.{variant.name}] flags"
    if flag in variant.run_flags:
        return f"[variants.{variant.name}] run_flags"
    device = next(one for one in suite.devices if one.name == case.device)
    return f"[devices.{device.name}] {'compile_flags' if flag in device.compile_flags else 'run_flags'}"
