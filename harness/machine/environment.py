"""What a run's machine was like: plain facts that explain a number later, without names of hosts, users or folders."""

import json
import os
import platform
import re
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import psutil

import harness
from harness import process
from harness.cache import cache_root, read_memo
from harness.machine.identity import NAME_VARIABLE, made_class, made_id, processor_identity
from harness.machine.processor import SystemFiles, capture_cpu, capture_limits, has_hypervisor_flag, known


def selfcheck_file() -> Path:
    """Where the last selfcheck is kept."""
    return cache_root() / "selfcheck.json"


def last_selfcheck(machine: str) -> dict[str, Any] | None:
    """What the last check on this machine found, as plain values; None where there was none."""
    kept = read_memo(selfcheck_file())
    if not machine or not isinstance(kept, dict) or kept.get("machine") != machine:
        return None
    facts = kept.get("facts")
    return facts if isinstance(facts, dict) else None


_NO_RANDOMISATION = 0x0040000  # ADDR_NO_RANDOMIZE, which `setarch -R` gives a process

# What firmware calls virtual machines, by product or by maker, where the processor does not say so itself.
_HYPERVISORS = {"KVM": "KVM", "Virtual Machine": "Hyper-V", "Google Compute Engine": "Google Compute Engine"}
_HYPERVISORS |= {"QEMU": "QEMU", "VMware, Inc.": "VMware", "innotek GmbH": "VirtualBox", "Xen": "Xen"}
_HYPERVISORS |= {name: name for name in ("Amazon EC2", "DigitalOcean", "Hetzner")}


def capture_environment(
    *, root: Path = Path("/"), llvm_name: Callable[[str], str] = lambda _: ""
) -> dict[str, dict[str, Any]]:
    """Describe this machine as it is now; what cannot be known is left out."""
    files = SystemFiles(root)
    machine, cpu = _machine(files), capture_cpu(files)
    facts = {"machine": machine, "cpu": cpu}
    if cpu and (name := llvm_name(processor_identity(facts))):
        cpu["llvm"] = name
    machine = {"id": made_id(facts, *_names(files)), "class": made_class(facts), **machine}
    checked = last_selfcheck(machine["id"])
    return {
        "machine": machine,
        "cpu": cpu,
        "memory": _memory(files),
        "load": _load(),
        "process": _process(files),
        **({"selfcheck": checked} if checked else {}),
    }


def harness_commit() -> str:
    """The git commit of the harness's checkout, `+dirty` added where code differs; else that which pip installed."""
    checkout = Path(harness.__file__).resolve().parent.parent
    where = _git(checkout, "rev-parse", "--show-toplevel", "HEAD").splitlines()
    # An installed package may lie in a virtual environment inside somebody else's repository.
    if len(where) != 2 or Path(where[0]).resolve() != checkout:
        return _installed_commit()
    changes = _git(checkout, "status", "--porcelain", "--", "harness", "pyproject.toml")
    return f"{where[1]}+dirty" if changes else where[1]


def _installed_commit() -> str:
    """What `pip install git+https://...` notes beside the package (PEP 610); it notes no commit of other installs."""
    try:
        installed = distribution("iree-harness")
        # What is imported may be another copy than the one that is installed.
        if Path(str(installed.locate_file("harness/__init__.py"))).resolve() != Path(harness.__file__).resolve():
            return ""
        commit = json.loads(installed.read_text("direct_url.json") or "{}")["vcs_info"]["commit_id"]
    except (PackageNotFoundError, OSError, ValueError, LookupError, TypeError):
        return ""
    return commit if isinstance(commit, str) else ""


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = process.run(
            # A worker's user is seldom the owner of the checkout, which git would refuse to look at.
            ["git", "-c", f"safe.directory={folder}", "-C", str(folder), *arguments],
            limits=process.Limits(seconds=10),
            env={"GIT_OPTIONAL_LOCKS": "0"},  # never in the way of a commit that is being made
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.ok else ""


def _machine(files: SystemFiles) -> dict[str, Any]:
    hypervisor = _hypervisor(files)
    pretty = re.search(r"""^PRETTY_NAME=["']?([^"'\n]+)""", files.text("etc/os-release") or "", re.MULTILINE)
    virtual = has_hypervisor_flag(files)
    if virtual is None and (hypervisor or files.text("sys/class/dmi/id/sys_vendor")):
        virtual = hypervisor is not None
    return known(
        {
            "system": platform.system(),
            "distribution": pretty[1] if pretty else None,
            "kernel": files.text("proc/sys/kernel/osrelease") or platform.release(),
            "architecture": platform.machine(),
            "virtual": virtual,
            "hypervisor": hypervisor if virtual else None,
        }
    )


def _names(files: SystemFiles) -> tuple[str, str]:
    """What tells this machine from others of its kind: what its image is called, and what its host or its user says."""
    host = os.environ.get(NAME_VARIABLE) or files.text("proc/sys/kernel/hostname") or platform.node()
    image = files.text("etc/machine-id") or ""
    return "" if image == "uninitialized" else image, host  # systemd's word for "not yet"


def _hypervisor(files: SystemFiles) -> str | None:
    if "microsoft" in (files.text("proc/sys/kernel/osrelease") or "").lower():
        return "WSL"
    kind = files.text("sys/hypervisor/type")
    if kind is not None:
        return kind.capitalize()
    product = files.text("sys/class/dmi/id/product_name") or ""
    if product.endswith(".metal"):  # Amazon names its real machines like its virtual ones
        return None
    return _HYPERVISORS.get(product) or _HYPERVISORS.get(files.text("sys/class/dmi/id/sys_vendor") or "")


def _memory(files: SystemFiles) -> dict[str, Any]:
    memory = psutil.virtual_memory()
    pages = re.search(r"\[(\w+)\]", files.text("sys/kernel/mm/transparent_hugepage/enabled") or "")
    return known(
        {
            "total_bytes": memory.total,
            "available_bytes": memory.available,
            "swap_used_bytes": psutil.swap_memory().used,
            "transparent_huge_pages": pages[1] if pages else None,  # `madvise` of `always [madvise] never`
        }
    )


def _load() -> dict[str, Any]:
    """The load, and of the CPU time wanted here since the start the share that the host gave to others."""
    times = psutil.cpu_times()._asdict()
    wanted = sum(times.get(kind, 0) for kind in ("user", "nice", "system", "irq", "softirq", "steal"))
    return known(
        {
            "load_1min": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
            "steal_percent": round(100 * times["steal"] / wanted, 2) if wanted and "steal" in times else None,
        }
    )


def _process(files: SystemFiles) -> dict[str, Any]:
    setting = files.integer("proc/sys/kernel/randomize_va_space")
    personality = int(files.text("proc/self/personality") or "0", 16)
    return known(
        {
            "python": platform.python_version(),
            # Whether every process gets another memory layout.
            "aslr": None if setting is None else setting > 0 and not personality & _NO_RANDOMISATION,
            "niceness": os.getpriority(os.PRIO_PROCESS, 0) if hasattr(os, "getpriority") else None,
            **capture_limits(files),
        }
    )
