"""What a run's machine was like, its id and its class: plain facts without names of hosts, users or folders."""

import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import psutil

import harness
from harness import process
from harness.cache import cache_root, read_memo
from harness.machine.processor import SystemFiles, capture_cpu, capture_limits, has_hypervisor_flag, known
from harness.text import one_line

Environment = Mapping[str, Mapping[str, Any]]

UNKNOWN_MACHINE = "a machine of which nothing is known"
# The user's name for this machine, where the host's own name tells too little, or another one with each start.
NAME_VARIABLE = "HARNESS_MACHINE"

# What decides code and speed; versions, load and frequencies of the moment are not among it.
_OF_PROCESSOR = ("model", "vendor", "family", "model_number", "flags")
_OF_MACHINE = (*_OF_PROCESSOR, "usable_cores", "l1d_bytes", "l1i_bytes", "l2_bytes", "l3_bytes")
_WIDTHS = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "sse4_2": "SSE4.2"}  # the widest first
_WIDTHS |= {"sve2": "SVE2", "sve": "SVE", "asimd": "NEON"}
_EXTRAS = {"avx512_bf16": "BF16", "bf16": "BF16", "avx512_fp16": "FP16", "asimdhp": "FP16", "i8mm": "I8MM"}
_EXTRAS |= {"avx512_vnni": "VNNI", "avx_vnni": "VNNI", "asimddp": "DotProd", "amx_tile": "AMX", "sme": "SME"}


def machine_id(environment: Environment) -> str:
    """12 hex digits; "" where it is not known."""
    return str(environment.get("machine", {}).get("id", ""))


def made_id(environment: Environment, *names: str) -> str:
    """12 hex digits that stay the same for a machine and do not tell which it is; no compiler has a say in it."""
    cpu, virtual = environment["cpu"], environment["machine"].get("virtual")
    text = json.dumps(["iree-harness", *names, [cpu.get(fact) for fact in _OF_MACHINE], virtual])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def machine_class(environment: Environment, device: str = "") -> str:
    """Which machines' figures may be compared, in words, as the machine said when it measured; versions are left out.

    A new kernel or driver begins no new class, so that its effect is seen as a step. Older runs have the words of that
    time: `AMD EPYC 7B13, 2 cores, Linux x86_64 (virtual)`.
    """
    said = str(environment.get("machine", {}).get("class", ""))
    parts = (
        *([said] if said else _class_of(environment, str(environment.get("cpu", {}).get("model", "")))),
        str(environment.get("device_names", {}).get(device, "")),
    )
    return _joined(parts) or UNKNOWN_MACHINE


def made_class(environment: Environment) -> str:
    """`AMD EPYC (AuthenticAMD 25/17, znver4, AVX-512 BF16 VNNI), 2 cores, L2 1 MiB, L3 32 MiB, Linux x86_64`."""
    cpu = environment["cpu"]
    names = {"l1d_bytes": "L1d", "l2_bytes": "L2", "l3_bytes": "L3"}
    caches = [f"{name} {_size(cpu[fact])}" for fact, name in names.items() if fact in cpu]
    return _joined(_class_of(environment, processor(environment), caches))


def _class_of(environment: Environment, processor_words: str, caches: Iterable[str] = ()) -> tuple[str, ...]:
    machine = environment.get("machine", {})
    system = " ".join(str(machine[key]) for key in ("system", "architecture") if key in machine)
    virtual = " (virtual)" if machine.get("virtual") else ""
    return (processor_words, _cores(environment), *caches, f"{system}{virtual}" if system else "")


def processor(environment: Environment) -> str:
    """`AMD EPYC (AuthenticAMD 25/17, znver4, AVX-512 BF16 VNNI)`: vendor, family, model, LLVM's name, vectors."""
    cpu = environment.get("cpu", {})
    numbers = f"{cpu.get('vendor', '')} {cpu['family']}/{cpu.get('model_number', '?')}" if "family" in cpu else ""
    told = ", ".join(part for part in (numbers, str(cpu.get("llvm", "")), instruction_set(environment)) if part)
    model = str(cpu.get("model", ""))
    return f"{model} ({told})" if model and told else model or told


def instruction_set(environment: Environment) -> str:
    """`AVX-512 BF16 VNNI`: the widest vectors, and what else multiplies; "" where it is not known."""
    said = environment.get("cpu", {}).get("flags")
    flags = said if isinstance(said, list) else ()
    widest = [word for flag, word in _WIDTHS.items() if flag in flags][:1]
    return " ".join([*widest, *sorted({word for flag, word in _EXTRAS.items() if flag in flags})])


def processor_identity(environment: Environment) -> str:
    """What `host` means in a compiler flag on this machine."""
    cpu = environment.get("cpu", {})
    numbers = [f" {cpu[fact]}" for fact in ("vendor", "family", "model_number") if fact in cpu]
    return f"{cpu.get('model', '')} {cpu.get('flags', '')}{''.join(numbers)}"


def machine_name(environment: Environment) -> str:
    """`machine 3f2a91c04b7e (virtual)`: the same words for the same machine, which do not tell its name."""
    machine = environment.get("machine", {})
    return f"machine {machine['id']}{' (virtual)' if machine.get('virtual') else ''}" if "id" in machine else ""


def describe_machine(environment: Environment) -> str:
    """`machine 3f2a91c04b7e (virtual), AMD EPYC (AVX2), 2 cores, Debian GNU/Linux 12`, as far as it is known."""
    machine = environment.get("machine", {})
    system = str(machine.get("distribution", machine.get("system", "")))
    parts = (machine_name(environment), processor(environment), _cores(environment), system)
    return ", ".join(part for part in parts if part) or UNKNOWN_MACHINE


def _cores(environment: Environment) -> str:
    cores = environment.get("cpu", {}).get("usable_cores")
    return "" if cores is None else f"{cores} core{'' if cores == 1 else 's'}"


def _size(size_bytes: int) -> str:
    return f"{size_bytes >> 20} MiB" if size_bytes % 2**20 == 0 else f"{size_bytes >> 10} KiB"


def _joined(parts: Iterable[str]) -> str:
    return one_line(", ".join(part for part in parts if part))


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
            "load_1min": round(os.getloadavg()[0], 2),
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
            "niceness": os.getpriority(os.PRIO_PROCESS, 0),
            **capture_limits(files),
        }
    )
