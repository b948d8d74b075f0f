"""What the processor is, how fast it may run, and who decides; and which of its cores a measuring process may have."""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import psutil

_CGROUPS = "sys/fs/cgroup"
_NO_LIMIT_BYTES = 2**60  # version 1 says "no limit" as a number near 2**63


@dataclass(frozen=True)
class SystemFiles:
    """Small text files below a root. What does not exist or may not be read is None: the caller leaves it out."""

    root: Path = Path("/")

    def text(self, path: str) -> str | None:
        """A file's text without white space around it; None where there is none."""
        try:
            return (self.root / path).read_text(errors="replace").strip("\0 \t\n") or None
        except OSError:
            return None

    def integer(self, path: str) -> int | None:
        """A file that holds one decimal number."""
        return as_integer(self.text(path))

    def matching(self, pattern: str) -> list[str]:
        """Paths below the root that match a glob pattern, sorted."""
        try:
            return sorted(path.relative_to(self.root).as_posix() for path in self.root.glob(pattern))
        except OSError:  # of a file system that has a fault
            return []


def as_integer(text: str | None) -> int | None:
    """A decimal number, or None where it is none (`max`, `<unsupported>`, nothing)."""
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def known(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts without those that are None."""
    return {name: value for name, value in facts.items() if value is not None}


def capture_limits(files: SystemFiles) -> dict[str, Any]:
    """Limits of the control groups that this process is in; {} where nothing limits it."""
    groups = _groups(files)
    cpu_limit = min(filter(None, (_cpu_limit_cores(files, group) for group in groups)), default=None)
    memory_limit = min(filter(None, (_memory_limit_bytes(files, group) for group in groups)), default=None)
    counts = (
        re.search(r"^nr_throttled (\d+)", files.text(f"{group}/cpu.stat") or "", re.MULTILINE) for group in groups
    )
    throttled = max((int(count[1]) for count in counts if count), default=None)
    return known(
        {
            "cpu_limit_cores": cpu_limit,
            "cpu_throttled_periods": throttled if cpu_limit is not None else None,
            "memory_limit_bytes": memory_limit,
        }
    )


def _groups(files: SystemFiles) -> list[str]:
    """Folders of this process's groups and their ancestors; in a container often only the root is there."""
    folders: dict[str, None] = {}  # a set that keeps order
    for line in (files.text("proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            base = f"{_CGROUPS}/{controller}" if controller else _CGROUPS
            group = PurePosixPath(path.lstrip("/"))
            for part in (group, *group.parents):
                folders[base if part == PurePosixPath() else f"{base}/{part}"] = None
    return list(folders)


def _cpu_limit_cores(files: SystemFiles, group: str) -> float | None:
    unified = (files.text(f"{group}/cpu.max") or "").split()
    if len(unified) == 2:
        quota_us, period_us = as_integer(unified[0]), as_integer(unified[1])
    else:
        quota_us, period_us = files.integer(f"{group}/cpu.cfs_quota_us"), files.integer(f"{group}/cpu.cfs_period_us")
    if quota_us is None or quota_us <= 0 or not period_us:
        return None
    return round(quota_us / period_us, 3)


def _memory_limit_bytes(files: SystemFiles, group: str) -> int | None:
    limit = files.integer(f"{group}/memory.max")
    if limit is None:
        limit = files.integer(f"{group}/memory.limit_in_bytes")
    return limit if limit is not None and limit < _NO_LIMIT_BYTES else None


_CPU = "sys/devices/system/cpu"
_EACH_CORE = f"{_CPU}/cpu[0-9]*"

# What decides which code a compiler emits for `host`; the rest of some 150 flags only makes environments differ.
_CODE_FLAGS = {
    *("sse4_2", "avx", "avx2", "fma", "f16c", "bmi2", "avx_vnni", "avx_vnni_int8", "avx_ifma", "avx_ne_convert"),
    *("asimd", "asimdhp", "asimddp", "asimdfhm", "fphp", "sve", "sve2", "i8mm", "bf16"),
    *("svei8mm", "svebf16", "sme", "sme2"),
}
_CODE_FLAG_FAMILIES = ("avx512", "avx10", "amx_")


def capture_cpu(files: SystemFiles) -> dict[str, Any]:
    """What identifies the processor and explains its speed; what cannot be known is left out."""
    first = _first_processor(files)
    policies = files.matching(f"{_EACH_CORE}/cpufreq/scaling_governor")
    governors = {governor for path in policies if (governor := files.text(path))}
    return known(
        {
            "model": _model(first) or platform.processor() or None,
            # As the processor numbers them itself; of 64-bit Arm, `model` has its part.
            "vendor": first.get("vendor_id"),
            "family": as_integer(first.get("cpu family")),
            "model_number": as_integer(first.get("model")),
            "flags": _code_flags(first),
            **_cores(files),
            **_frequencies(),
            "governor": ", ".join(sorted(governors)) or None,
            "frequency_driver": files.text(f"{_CPU}/cpu0/cpufreq/scaling_driver"),
            "turbo": _turbo(files),
            **_caches(files),
        }
    )


def has_hypervisor_flag(files: SystemFiles) -> bool | None:
    """Whether the processor itself says that it is a virtual one; None where processors do not say (not x86)."""
    flags = _first_processor(files).get("flags")
    return None if flags is None else "hypervisor" in flags.split()


def _first_processor(files: SystemFiles) -> dict[str, str]:
    for block in (files.text("proc/cpuinfo") or "").split("\n\n"):
        pairs = [line.partition(":") for line in block.splitlines() if ":" in line]
        fields = {name.strip(): value.strip() for name, _, value in pairs}
        if "processor" in fields:
            return fields
    return {}


def _model(first: dict[str, str]) -> str | None:
    if "model name" not in first and "CPU part" in first:  # 64-bit Arm gives numbers only
        return f"Arm implementer {first.get('CPU implementer', '?')}, part {first['CPU part']}"
    return first.get("model name")


def _code_flags(first: dict[str, str]) -> list[str] | None:
    flags = first.get("flags", first.get("Features"))
    if flags is None:
        return None
    return sorted(flag for flag in flags.split() if flag in _CODE_FLAGS or flag.startswith(_CODE_FLAG_FAMILIES))


def _cores(files: SystemFiles) -> dict[str, Any]:
    """How many cores there are and how many of them this process may use (its affinity)."""
    logical, physical = psutil.cpu_count(), psutil.cpu_count(logical=False)
    smt = files.integer(f"{_CPU}/smt/active")
    return {
        "logical_cores": logical,
        "physical_cores": physical,
        "usable_cores": usable_cores(),
        "cores_by_kind": list(map(_cpu_list, kinds)) if len(kinds := core_kinds(files)) > 1 else None,
        "isolated_cores": files.text(f"{_CPU}/isolated"),
        "smt": bool(smt) if smt is not None else (logical > physical if logical and physical else None),
    }


def core_kinds(files: SystemFiles) -> tuple[frozenset[int], ...]:
    """Cores by how fast they are made, the fastest first; () where the system does not tell, or makes no difference."""
    capacities: dict[int, set[int]] = {}
    for path in files.matching(f"{_EACH_CORE}/cpu_capacity"):
        core, capacity = as_integer(path.split("/")[-2].removeprefix("cpu")), files.integer(path)
        if core is not None and capacity is not None:
            capacities.setdefault(capacity, set()).add(core)
    if capacities:
        return tuple(frozenset(capacities[capacity]) for capacity in sorted(capacities, reverse=True))
    families = (_cpus(files.text(f"sys/devices/{family}/cpus")) for family in ("cpu_core", "cpu_atom", "cpu_lowpower"))
    return tuple(family for family in families if family)


def _cpus(cpu_list: str | None) -> frozenset[int]:
    """The processors that a kernel list such as `0-3,8` names; none of one that is no such list."""
    found: set[int] = set()
    for part in (cpu_list or "").split(","):
        first, _, last = part.partition("-")
        low, high = as_integer(first), as_integer(last or first)
        if low is None or high is None:
            return frozenset()
        found.update(range(low, high + 1))
    return frozenset(found)


def _cpu_list(cpus: frozenset[int]) -> str:
    """The same as `taskset --cpu-list` takes it: `0-3,8`."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts)


def _frequencies() -> dict[str, int | None]:
    """Over all cores the highest maximum and the lowest minimum, in MHz."""
    try:
        found = psutil.cpu_freq(percpu=True)
    except (AttributeError, NotImplementedError, OSError, RuntimeError):  # as on some Apple and virtual machines
        found = []
    return {
        "max_mhz": round(max((core.max for core in found), default=0)) or None,
        "min_mhz": round(min((core.min for core in found), default=0)) or None,
    }


def _turbo(files: SystemFiles) -> bool | None:
    no_turbo = files.integer(f"{_CPU}/intel_pstate/no_turbo")
    if no_turbo is not None:
        return not no_turbo
    boost = files.integer(f"{_CPU}/cpufreq/boost")
    return bool(boost) if boost is not None else None


def _caches(files: SystemFiles) -> dict[str, int]:
    kinds = {"Data": "d", "Instruction": "i", "Unified": ""}
    sizes = {}
    for folder in files.matching(f"{_CPU}/cpu0/cache/index[0-9]*"):
        level, kind = files.integer(f"{folder}/level"), files.text(f"{folder}/type")
        size_bytes = _size_bytes(files.text(f"{folder}/size"))
        if level is not None and kind in kinds and size_bytes is not None:
            sizes[f"l{level}{kinds[kind]}_bytes"] = size_bytes
    return sizes


def _size_bytes(text: str | None) -> int | None:
    """`32K` or `16M` in bytes."""
    if not text:
        return None
    factor = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1])
    number = as_integer(text[:-1] if factor else text)
    return None if number is None else number * (factor or 1)


def last_core(root: Path = Path("/")) -> frozenset[int] | None:
    """The last core this process may use (the first ones serve most interrupts); None where there is no pinning."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    usable = os.sched_getaffinity(0)
    fastest = next((both for kind in core_kinds(SystemFiles(root)) if (both := kind & usable)), usable)
    return frozenset({max(fastest)})


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables that hold libraries to so many threads; each reads its own when it is loaded."""
    variables = [f"{library}_NUM_THREADS" for library in ("HL", "MKL", "OMP", "OPENBLAS", "TVM")]
    return dict.fromkeys([*variables, "VECLIB_MAXIMUM_THREADS"], str(threads))
