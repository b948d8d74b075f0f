"""Where a recording was made, noted beside it while it is made: a recording by itself knows only times."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.machine.environment import processor
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import environment_here


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The machine and the tools of a recording."""

    cpu: str
    cores: int
    system: str
    virtual: bool
    iree: str


def note(path: Path, toolchain: Toolchain) -> None:
    """Write down this machine beside a recording, unless one is noted already."""
    where = _beside(path)
    if where.is_file():
        return
    environment = environment_here()
    machine, cpu = environment["machine"], environment["cpu"]
    facts = Facts(
        cpu=processor(environment) or "an unknown processor",
        cores=int(cpu.get("logical_cores", 0)),
        system=f"{machine.get('distribution', machine.get('system', ''))}, kernel {machine.get('kernel', '?')}",
        virtual=bool(machine.get("virtual", False)),
        iree=f"{toolchain.version} ({toolchain.revision[:10]})",
    )
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(json.dumps(asdict(facts), indent=1) + "\n")


def noted(path: Path) -> Facts | None:
    """What was noted beside a recording."""
    where = _beside(path)
    return Facts(**json.loads(where.read_text())) if where.is_file() else None


def _beside(path: Path) -> Path:
    return path.with_name(path.name.split(".")[0] + ".machine.json")
