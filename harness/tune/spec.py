"""Tuning specs: lowering configurations as a text that iree-compile takes with --iree-codegen-tuning-spec-path."""

from __future__ import annotations

from collections.abc import Sequence

from harness.rewrites.tuned_configuration import LEVELS, compilation_info
from harness.tune.roots import Root
from harness.tune.tiles import Configuration

# Attributes and names are those by which IREE recognises a spec that has one entry point and nothing else, which it
# can then join with other specs.
_MODULE = """\
{comments}
module attributes {{transform.with_named_sequence, iree_codegen.tuning_spec_with_default_entrypoint}} {{
  transform.named_sequence @configure(
      %op: !transform.any_op {{transform.readonly}}, %configuration: !transform.any_param {{transform.readonly}}) {{
    transform.annotate %op "compilation_info" = %configuration : !transform.any_op, !transform.any_param
    transform.yield
  }}

{sequences}

  transform.named_sequence @__kernel_config(%module: !transform.any_op {{transform.consumed}}) -> !transform.any_op
      attributes {{iree_codegen.tuning_spec_entrypoint}} {{
    %configured = transform.foreach_match in %module
{choices} : (!transform.any_op) -> !transform.any_op
    transform.yield %configured : !transform.any_op
  }}
}}
"""
_SEQUENCE = """\
{comments}
  transform.named_sequence @{name}(%op: !transform.any_op {{transform.readonly}})
      -> (!transform.any_op, !transform.any_param) {{
    %inputs, %outputs = transform.iree.match.cast_compatible_dag_from_root %op {{
    ^bb0({arguments}):
{matcher}
    }} : (!transform.any_op) -> (!transform.any_value, !transform.any_value)
    %configuration = transform.param.constant
      {configuration}
      -> !transform.any_param
    transform.yield %op, %configuration : !transform.any_op, !transform.any_param
  }}"""


def spec_of(entries: Sequence[tuple[Root, Configuration]]) -> str:
    """The tuning spec that gives operations their configurations.

    A spec sees nothing of an operation but itself. So where dispatches have the same root, with other operations around
    it, the first entry counts for all of them.
    """
    first: dict[tuple[str, tuple[str, ...]], tuple[Root, Configuration]] = {}
    for root, configuration in entries:
        first.setdefault((root.matcher, root.operands), (root, configuration))
    named = {f"operation_{number}": entry for number, entry in enumerate(first.values())}
    heading = (
        "// Lowering configurations for llvm-cpu: iree-compile --iree-codegen-tuning-spec-path=<this file>\n"
        "// An operation of other shapes, types or attributes keeps the compiler's own configuration."
    )
    return _MODULE.format(
        comments=heading,
        sequences="\n\n".join(_sequence(name, *entry) for name, entry in named.items()),
        choices=",\n".join(f"      @{name} -> @configure" for name in named),
    )


def _sequence(name: str, root: Root, configuration: Configuration) -> str:
    return _SEQUENCE.format(
        comments="\n".join(f"  // {line}" for line in _description(root, configuration)),
        name=name,
        arguments=", ".join(f"%arg{number}: {type_}" for number, type_ in enumerate(root.operands)),
        matcher="\n".join(f"      {line}" for line in root.matcher.splitlines()),
        configuration=compilation_info(configuration.pipeline, configuration.tiles),
    )


def _description(root: Root, configuration: Configuration) -> list[str]:
    """What an entry is for, for people: the loops, and at each level the tile sizes beside the compiler's own."""
    loops = ", ".join(f"{'?' if loop.size < 0 else loop.size} {loop.kind}" for loop in root.loops)
    lines = [f"{root.op}, loops: {loops}"]
    lines.append(configuration.pipeline + _instead(configuration.pipeline, root.pipeline))
    for level in LEVELS:
        if sizes := configuration.tiles.get(level):
            own = root.tiles.get(level)
            lines.append(f"  {level} {_sizes(sizes)}{_instead(_sizes(sizes), _sizes(own) if own else 'none')}")
    return lines


def _sizes(sizes: Sequence[int]) -> str:
    return " x ".join(str(size) if size else "-" for size in sizes)


def _instead(chosen: str, own: str) -> str:
    return "" if chosen == own else f" (the compiler's own: {own})"
