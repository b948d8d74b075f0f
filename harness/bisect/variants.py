"""Two variants -> the parts in which they differ, and a variant with some of them.

A variant's flag sets are taken apart into their flags, since it is one flag that people look for. What replaces a flag
of the base's is one part; an option of a plugin does nothing without its plugin, so the two are found together.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from harness.toolchain.tools import flag_name

Kind = Literal["flag", "run flag", "plugin", "option"]
# What sets others where the compiler is not told otherwise, and how the names of those end that it is known to set.
_LEVEL, _OF_A_LEVEL = "iree-opt-level", "-opt-level"


@dataclass(frozen=True, kw_only=True)
class Use:
    """One use of a plugin."""

    name: str
    number: int = 0  # Of several uses of the same plugin, which one, from 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """Which use it is."""
        return self.name, self.number


@dataclass(frozen=True, kw_only=True)
class CompileConfig:
    """How a variant compiles and runs: all of its flags, those of its flag sets included, and its plugins."""

    flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()
    plugins: tuple[Use, ...] = ()

    def table(self) -> dict[str, Any]:
        """As a suite has it."""
        table: dict[str, Any] = {}
        if self.flags:
            table["flags"] = list(self.flags)
        if self.run_flags:
            table["run_flags"] = list(self.run_flags)
        if self.plugins:
            table["plugins"] = [{"name": use.name, "options": dict(use.options)} for use in self.plugins]
        return table


@dataclass(frozen=True, kw_only=True)
class Part:
    """One difference between two variants."""

    kind: Kind
    adds: bool  # Whether the second variant has it; else only the first one does
    text: str  # The flag, or the plugin's registered name
    number: int = 0  # Of the plugin's use, see `Use`
    option: str = ""  # Of a plugin; "" of other kinds
    value: Any = None  # Of the option

    @property
    def words(self) -> str:
        """How a report names it: `--iree-x=y`, `without --iree-x`, `tuned: vector_width = 16`."""
        if not self.adds:
            return f"without {self.text}{f': {self.option}' if self.option else ''}"
        value = str(self.value).lower() if isinstance(self.value, bool) else repr(self.value)
        return {
            "flag": self.text,
            "run flag": f"{self.text} at run time",
            "plugin": f"plugin {self.text}",
            "option": f"{self.text}: {self.option} = {value}",
        }[self.kind]


def uses_of(plugins: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[Use, ...]:
    """Plugins with their options, in order, as uses."""
    seen: dict[str, int] = {}
    uses = []
    for name, options in plugins:
        number = seen.setdefault(name, 0)
        uses.append(Use(name=name, number=number, options=dict(options)))
        seen[name] += 1
    return tuple(uses)


def parts_between(base: CompileConfig, head: CompileConfig) -> tuple[Part, ...]:
    """What makes one variant of another, in the order of the second; what it leaves out comes last of its kind."""
    parts = [*_flag_parts("flag", base.flags, head.flags), *_flag_parts("run flag", base.run_flags, head.run_flags)]
    before = {use.key: use for use in base.plugins}
    for use in head.plugins:
        old = before.pop(use.key, None)
        if old is None:
            parts.append(Part(kind="plugin", adds=True, text=use.name, number=use.number))
        had = {} if old is None else old.options
        parts += [
            Part(kind="option", adds=True, text=use.name, number=use.number, option=name, value=value)
            for name, value in use.options.items()
            if name not in had or had[name] != value
        ]
        parts += [
            Part(kind="option", adds=False, text=use.name, number=use.number, option=name)
            for name in had
            if name not in use.options
        ]
    parts += [Part(kind="plugin", adds=False, text=use.name, number=use.number) for use in before.values()]
    return tuple(parts)


def _flag_parts(kind: Kind, base: Sequence[str], head: Sequence[str]) -> list[Part]:
    added = [flag for flag in head if flag not in base]
    replaced = {flag_name(flag) for flag in added}
    gone = [flag for flag in base if flag not in head and flag_name(flag) not in replaced]
    return [
        *(Part(kind=kind, adds=True, text=flag) for flag in dict.fromkeys(added)),
        *(Part(kind=kind, adds=False, text=flag) for flag in dict.fromkeys(gone)),
    ]


def with_parts(base: CompileConfig, head: CompileConfig, parts: Collection[Part]) -> CompileConfig:
    """The first variant with some of the parts; with all of them it is the second one."""
    plugins = [_with_options(use, parts) for use in base.plugins if not _is_chosen("plugin", False, use, parts)]
    plugins += [
        _with_options(replace(use, options={}), parts)
        for use in head.plugins
        if _is_chosen("plugin", True, use, parts) and use.key not in {other.key for other in base.plugins}
    ]
    order = {use.key: place for place, use in enumerate(head.plugins)}
    return CompileConfig(
        flags=_flags_with("flag", base.flags, head.flags, parts),
        run_flags=_flags_with("run flag", base.run_flags, head.run_flags, parts),
        # What only the base has keeps its place before all others.
        plugins=tuple(sorted(plugins, key=lambda use: order.get(use.key, -1))),
    )


def _is_chosen(kind: Kind, adds: bool, use: Use, parts: Iterable[Part]) -> bool:
    return any((part.kind, part.adds, part.text, part.number) == (kind, adds, *use.key) for part in parts)


def _with_options(use: Use, parts: Iterable[Part]) -> Use:
    mine = [part for part in parts if part.kind == "option" and (part.text, part.number) == use.key]
    gone = {part.option for part in mine if not part.adds}
    kept = {name: value for name, value in use.options.items() if name not in gone}
    return replace(use, options={**kept, **{part.option: part.value for part in mine if part.adds}})


def _flags_with(kind: Kind, base: Sequence[str], head: Sequence[str], parts: Iterable[Part]) -> tuple[str, ...]:
    mine = [part for part in parts if part.kind == kind]
    added = [part.text for part in mine if part.adds]
    gone = {part.text for part in mine if not part.adds}
    names = {flag_name(flag) for flag in added}
    kept = [flag for flag in base if flag not in gone and (flag in head or flag_name(flag) not in names)]
    order = {flag: place for place, flag in enumerate(head)}
    in_head = sorted((flag for flag in (*kept, *added) if flag in order), key=lambda flag: order[flag])
    # What only the base has comes first; what neither has, last.
    return (
        *(flag for flag in kept if flag not in order),
        *in_head,
        *(flag for flag in added if flag not in order),
    )


def parts_of_level(part: Part, known: Collection[str]) -> tuple[Part, ...]:
    """The levels that an optimisation level sets for parts of the compiler, as parts in its place; else ()."""
    if part.kind != "flag" or not part.adds or flag_name(part.text) != _LEVEL:
        return ()
    level = part.text.partition("=")[2]
    names = sorted(name for name in known if name.endswith(_OF_A_LEVEL) and name != _LEVEL)
    return tuple(Part(kind="flag", adds=True, text=f"--{name}={level}") for name in names)
