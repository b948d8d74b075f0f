"""`harness ir` and `harness ablate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from harness.cli.app import Format, Positive, app


@app.command
def ir(
    suite: Path,
    case: str,
    *,
    phases: Annotated[list[str] | None, Parameter(name="--phase", negative="")] = None,
    ops: Annotated[list[str] | None, Parameter(name="--ops", negative="")] = None,
    compile_timeout: Annotated[float, Parameter(validator=Number(gt=0, lt=10_000_000))] = 900.0,
    format: Literal["terminal", "mlir", "json"] = "terminal",  # noqa: A002 (the option's name)
    out: Path | None = None,
) -> int:
    """Count the operations of a case's IR at phases of the compiler, or print the IR of one phase.

    Args:
        suite: The suite's TOML file.
        case: The case's name, as `harness list` shows it.
        phases: At this phase; repeatable (default: input, flow, stream, bufferized, executable-targets).
        ops: Only operations that match this pattern, such as linalg.* or executables:memref.alloc; repeatable (default:
            those that tell of buffers and copies).
        compile_timeout: Seconds after which a compile is stopped.
        format: Counts, or with mlir the IR itself, without the values of weights.
        out: Write it to this file instead of stdout.
    """
    from harness.commands.ir import ir_command

    return ir_command(
        suite, case, tuple(phases or ()), tuple(ops or ()), format, compile_timeout_s=compile_timeout, out=out
    )


@app.command
def ablate(
    suite: Path,
    *,
    models: Annotated[list[str], Parameter(name="--model", negative="")],
    plugin: str,
    devices: Annotated[list[str] | None, Parameter(name="--device", negative="")] = None,
    on: str | None = None,
    budget: Positive = None,
    results: Path = Path("results"),
    format: Format = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Run a model with no option of a plugin, with each alone, all but each, and all, and show what each does.

    Args:
        suite: The suite's TOML file.
        models: Its name in the suite; repeatable.
        plugin: The plugin's registered name; its options that are true or false are ablated.
        devices: On this device; repeatable (default: the suite's first).
        on: The variant that the plugin is added to, or that has it already (default: the suite's baseline).
        budget: Seconds of timed rounds (default: the suite's).
        results: Where the run's directory goes, and the suite that is made for it.
        format: How to print it; markdown is one table.
    """
    from harness.commands.ir import ablate_command
    from harness.stages.ablating import Ablation

    ablation = Ablation(models=tuple(models), plugin=plugin, devices=tuple(devices or ()), on=on, budget_s=budget)
    return ablate_command(suite, ablation, results, format)
