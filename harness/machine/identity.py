"""What a figure belongs to: a machine, its class and its processor, in words, out of an environment's facts."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

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
