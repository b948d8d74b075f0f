"""Plugins, builders and peers that installed packages register, with what each takes, as a page and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.errors import SuiteError, UsageError
from harness.models.builder import BUILDERS, Builder
from harness.peers.peer import PEERS, AppliedPeer, Peer
from harness.plugins import PLUGINS, Plugin
from harness.plugins.options import Option, options_of
from harness.plugins.registry import Registry
from harness.report.data import to_json
from harness.report.page import Code, Column, Heading, Page, Part, Table, Tone
from harness.report.units import NOTHING
from harness.text import did_you_mean, plural

# By the word for several of them: the registry, what one of their options is called, and where a suite names them.
_KINDS: dict[str, tuple[Registry[Any], str, str]] = {
    "plugins": (PLUGINS, "option", '[variants.V]  plugins = ["NAME", { name = "NAME", options = { OPTION = ... } }]'),
    "builders": (BUILDERS, "parameter", '[models.M]  builder = "NAME"  params = { PARAMETER = ... }'),
    "peers": (PEERS, "option", 'peers = ["NAME", { name = "NAME", options = { OPTION = ... } }]'),
}


@dataclass(frozen=True, kw_only=True)
class Registered:
    """What is registered by one name."""

    kind: str  # `plugins`, `builders` or `peers`
    name: str
    package: str  # What brings it, with the package's version
    version: str = ""
    description: str = ""
    backends: tuple[str, ...] = ()  # That a plugin is for; (): all
    toolchains: str = ""  # A specifier of the releases that a plugin is for; "": all
    options: tuple[Option, ...] = ()
    unavailable: str = ""  # Why it cannot be used here, as a sentence; "": it can

    @property
    def suits(self) -> str:
        """What a plugin is for, in words: `llvm-cpu, IREE >=3.12`."""
        return ", ".join([*self.backends, *([f"IREE {self.toolchains}"] if self.toolchains else [])])


def find_registered(names: Sequence[str] = ()) -> tuple[Registered, ...]:
    """All that is registered, or what is by these names; of a package that is broken, why."""
    known = sorted({name for registry, _, _ in _KINDS.values() for name in registry.names})
    for name in names:
        if name not in known:
            raise UsageError(f"there is no plugin, builder or peer {name!r}{did_you_mean(name, known)}")
    return tuple(
        _registered(kind, registry, name)
        for kind, (registry, _, _) in _KINDS.items()
        for name in registry.names
        if not names or name in names
    )


def _registered(kind: str, registry: Registry[Any], name: str) -> Registered:
    package = registry.distribution_of(name)
    try:
        found: Plugin[Any] | Builder[Any] | Peer[Any] = registry.find(name)
        taken = found.parameters if isinstance(found, Builder) else found.options
        options = options_of(taken, f"{registry.noun} {name!r}")
    except SuiteError as error:
        return Registered(kind=kind, name=name, package=package, unavailable=str(error))
    missing = AppliedPeer(peer=found, label=name, options={}).missing if isinstance(found, Peer) else None
    return Registered(
        kind=kind,
        name=name,
        package=package,
        version="" if isinstance(found, Peer) else found.version,
        description=found.description,
        backends=found.backends if isinstance(found, Plugin) else (),
        toolchains=found.toolchains if isinstance(found, Plugin) else "",
        options=options,
        unavailable=missing or "",
    )


def registered_page(found: Sequence[Registered]) -> Page:
    """A table of names and one of options for each kind."""
    parts: list[Part] = []
    for kind, (registry, noun, use) in _KINDS.items():
        rows = [row for row in found if row.kind == kind]
        if rows:
            parts += [Heading(kind.capitalize()), _names(rows, registry.noun), *_options(rows, registry.noun, noun)]
            parts.append(Code(use))
    counts = [
        plural(sum(row.kind == kind for row in found), registry.noun) for kind, (registry, _, _) in _KINDS.items()
    ]
    return Page(verdict=f"{counts[0]}, {counts[1]} and {counts[2]}.", parts=parts)


def _names(rows: Sequence[Registered], noun: str) -> Table:
    tones: list[Tone] = ["dim" if row.unavailable else "" for row in rows]
    columns = [
        Column(noun, [row.name for row in rows], kind="name"),
        Column("package", [row.package or NOTHING for row in rows], rank=1),
        Column("what it does", [(row.description, row.unavailable) for row in rows], kind="sentence"),
    ]
    if any(row.suits for row in rows):
        columns.insert(1, Column("for", [row.suits for row in rows]))
    return Table(columns=columns, tones=tones)


def _options(rows: Sequence[Registered], noun: str, option: str) -> tuple[Table, ...]:
    pairs = [(row.name, taken) for row in rows for taken in row.options]
    if not pairs:
        return ()
    columns = [
        Column(noun, [name for name, _ in pairs], kind="name"),
        Column(option, [taken.name for _, taken in pairs]),
        Column("type", [taken.takes for _, taken in pairs]),
        Column("default", ["none: give it" if taken.required else json.dumps(taken.default) for _, taken in pairs]),
    ]
    return (Table(columns=columns),)


def registered_json(found: Sequence[Registered]) -> str:
    """The same as one JSON document with `schema_version`; each option has its JSON Schema."""
    document: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _KINDS}
    for row in found:
        record = asdict(row) | {"options": [{**asdict(taken), "type": taken.takes} for taken in row.options]}
        document[record.pop("kind")].append(record)
    return to_json(document)
