"""Machines as the files that they show of themselves below /proc, /sys and /etc."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

CPU = "sys/devices/system/cpu"

MakeMachine = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def make_machine(tmp_path: Path) -> MakeMachine:
    """Write files below a folder that then serves as the root."""

    def make(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return make


def cpuinfo(model: str, flags: str, count: int) -> str:
    """/proc/cpuinfo of an x86 machine with equal processors."""
    blocks = [
        f"processor\t: {index}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 140\nmodel name\t: {model}\n"
        f"flags\t\t: {flags}\n"
        for index in range(count)
    ]
    return "\n".join(blocks)


@pytest.fixture
def laptop() -> dict[str, str]:
    """A real machine that saves power."""
    cores: dict[str, str] = {}
    for index in range(4):
        cores |= {
            f"{CPU}/cpu{index}/cpufreq/scaling_governor": "powersave\n",
            f"{CPU}/cpu{index}/cpufreq/energy_performance_preference": "balance_performance\n",
            f"{CPU}/cpu{index}/cpufreq/scaling_driver": "intel_pstate\n",
        }
    return cores | {
        "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
        "etc/os-release": 'NAME="Fedora Linux"\nPRETTY_NAME="Fedora Linux 44 (Workstation)"\n',
        "proc/sys/kernel/osrelease": "6.17.1-300.fc44.x86_64\n",
        "proc/cpuinfo": cpuinfo("Intel(R) Core(TM) i7-1165G7 @ 2.80GHz", "fpu sse4_2 avx2 fma smep avx512f sgx", 4),
        "proc/self/cgroup": "0::/user.slice/session-2.scope\n",
        "proc/sys/kernel/randomize_va_space": "2\n",
        "proc/self/personality": "00000000\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        "sys/class/dmi/id/sys_vendor": "LENOVO\n",
        "sys/class/dmi/id/product_name": "20W0003AGE\n",
        f"{CPU}/smt/active": "1\n",
        f"{CPU}/isolated": "\n",
        f"{CPU}/intel_pstate/no_turbo": "0\n",
        "sys/devices/system/node/node0/cpulist": "0-3\n",
        f"{CPU}/cpu0/cache/index0/level": "1\n",
        f"{CPU}/cpu0/cache/index0/type": "Data\n",
        f"{CPU}/cpu0/cache/index0/size": "48K\n",
        f"{CPU}/cpu0/cache/index1/level": "1\n",
        f"{CPU}/cpu0/cache/index1/type": "Instruction\n",
        f"{CPU}/cpu0/cache/index1/size": "32K\n",
        f"{CPU}/cpu0/cache/index3/level": "3\n",
        f"{CPU}/cpu0/cache/index3/type": "Unified\n",
        f"{CPU}/cpu0/cache/index3/size": "12M\n",
    }


@pytest.fixture
def virtual_machine() -> dict[str, str]:
    """A rented machine of 2 cores."""
    return {
        "etc/machine-id": "fedcba9876543210fedcba9876543210\n",
        "proc/cpuinfo": cpuinfo("AMD EPYC 7B13", "fpu avx2 fma hypervisor", 2),
        "sys/class/dmi/id/sys_vendor": "QEMU\n",
        "sys/class/dmi/id/product_name": "KVM\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    }


@pytest.fixture
def arm_server() -> dict[str, str]:
    """A 64-bit Arm machine, whose processors give numbers in place of names."""
    block = "processor\t: {}\nBogoMIPS\t: 2100.00\nFeatures\t: fp asimd sve bf16 i8mm crc32\n"
    block += "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n"
    return {
        "proc/cpuinfo": "\n".join(block.format(index) for index in range(8)),
        "sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
        "sys/class/dmi/id/product_name": "c7g.2xlarge\n",
        f"{CPU}/cpufreq/boost": "1\n",
        f"{CPU}/isolated": "4-7\n",
    }
