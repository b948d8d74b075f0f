"""Machines, made up of the files that they show, and the one that runs the tests; and what they are called.

Which machines are one, which are of one class, and in which words.
"""

import getpass
import json
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

import harness
from harness.machine.environment import (
    NAME_VARIABLE,
    capture_environment,
    describe_machine,
    harness_commit,
    instruction_set,
    machine_class,
    machine_id,
    processor_identity,
)
from harness.machine.processor import last_core, usable_cores
from tests.builders import commit, git

CPU = "sys/devices/system/cpu"


def machine_of(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder, which then serves as the root."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def cache_files(index: int, level: int, kind: str, size: str) -> dict[str, str]:
    """What a processor's first core says of one of its caches."""
    folder = f"{CPU}/cpu0/cache/index{index}"
    return {f"{folder}/level": f"{level}\n", f"{folder}/type": f"{kind}\n", f"{folder}/size": f"{size}\n"}


# What psutil says of the machine that runs the tests, whatever files it is given.
MEASURED = {"logical_cores", "physical_cores", "usable_cores", "max_mhz", "min_mhz"}
X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 140\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd sve bf16 i8mm crc32\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"
ARM_FLAGS = ["asimd", "bf16", "i8mm", "sve"]
VENDOR, PRODUCT = (f"sys/class/dmi/id/{name}" for name in ("sys_vendor", "product_name"))
LAYOUT, PERSONALITY = "proc/sys/kernel/randomize_va_space", "proc/self/personality"
HUGE_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"


def facts_of(captured: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Of the processor, what its files say."""
    return {name: fact for name, fact in captured["cpu"].items() if name not in MEASURED}


def test_a_real_machine_that_saves_power(tmp_path: Path) -> None:
    root = machine_of(
        tmp_path,
        {
            **{f"{CPU}/cpu{core}/cpufreq/scaling_governor": "powersave\n" for core in range(4)},
            f"{CPU}/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
            "etc/os-release": 'NAME="Fedora Linux"\nPRETTY_NAME="Fedora Linux 44 (Workstation)"\n',
            "proc/sys/kernel/osrelease": "6.17.1-300.fc44.x86_64\n",
            "proc/cpuinfo": f"{X86}model name\t: Core i7\nflags\t\t: fpu sse4_2 avx2 fma smep avx512f sgx\n",
            "proc/self/cgroup": "0::/user.slice/session-2.scope\n",
            HUGE_PAGES: "[always] madvise never\n",
            VENDOR: "LENOVO\n",
            PRODUCT: "20W0003AGE\n",
            f"{CPU}/smt/active": "1\n",
            f"{CPU}/isolated": "\n",
            f"{CPU}/intel_pstate/no_turbo": "0\n",
            **cache_files(0, 1, "Data", "48K"),
            **cache_files(1, 1, "Instruction", "32K"),
            **cache_files(3, 3, "Unified", "12M"),
        },
    )
    captured = capture_environment(root=root)
    assert captured["machine"] == {
        "id": captured["machine"]["id"],
        "class": f"Core i7 (GenuineIntel 6/140, AVX-512), {usable_cores()} core{'' if usable_cores() == 1 else 's'}, "
        f"L1d 48 KiB, L3 12 MiB, {platform.system()} {platform.machine()}",
        "system": platform.system(),
        "distribution": "Fedora Linux 44 (Workstation)",
        "kernel": "6.17.1-300.fc44.x86_64",
        "architecture": platform.machine(),
        "virtual": False,
    }
    assert facts_of(captured) == {
        "model": "Core i7",
        "vendor": "GenuineIntel",
        "family": 6,
        "model_number": 140,
        "flags": ["avx2", "avx512f", "fma", "sse4_2"],
        "smt": True,
        "governor": "powersave",
        "frequency_driver": "intel_pstate",
        "turbo": True,
        "l1d_bytes": 48 * 1024,
        "l1i_bytes": 32 * 1024,
        "l3_bytes": 12 * 1024 * 1024,
    }
    assert captured["memory"]["transparent_huge_pages"] == "always"


def test_what_psutil_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {"user": 800, "nice": 0, "system": 150, "irq": 0, "softirq": 0, "steal": 50, "idle": 9000}
    monkeypatch.setattr(psutil, "cpu_times", lambda: Mock(**counted, _asdict=lambda: counted))
    monkeypatch.setattr(psutil, "cpu_freq", Mock(side_effect=NotImplementedError))
    captured = capture_environment()
    assert captured["load"]["steal_percent"] == 5.0
    assert "max_mhz" not in captured["cpu"]


@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        ({"sys/devices/cpu_core/cpus": "1-2\n", "sys/devices/cpu_atom/cpus": "0,3-40\n"}, ["1-2", "0,3-40"]),
        ({f"{CPU}/cpu{core}/cpu_capacity": f"{1024 - core % 2}\n" for core in range(4)}, ["0,2", "1,3"]),
        ({}, None),
    ],
)
def test_cores_of_different_kinds_are_told_and_a_fast_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], kinds: list[str] | None
) -> None:
    """Intel's two families; Arm's capacities; and processors without such a difference."""
    root = machine_of(tmp_path, files)
    assert capture_environment(root=root)["cpu"].get("cores_by_kind") == kinds
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert last_core(root) == frozenset({2 if kinds else 3})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert last_core(root) == frozenset({3})


def test_a_machine_that_tells_nothing_or_nonsense(tmp_path: Path) -> None:
    captured = capture_environment(root=machine_of(tmp_path, {}))
    assert captured.keys() == {"machine", "cpu", "memory", "load", "process"}
    assert captured["machine"].keys() == {"id", "class", "system", "kernel", "architecture"}
    assert facts_of(captured).keys() <= {"model", "smt"}
    files = {f"{CPU}/smt/active": "perhaps\n", **cache_files(0, 1, "Data", "big")}
    assert facts_of(capture_environment(root=machine_of(tmp_path, files))) == facts_of(captured)


GROUP, GROUPS = "sys/fs/cgroup", "proc/self/cgroup"
CPUS_2 = {f"{GROUP}/cpu.max": "150000 100000\n", f"{GROUP}/cpu.stat": "nr_periods 40\nnr_throttled 12\n"}
PARENTS = {f"{GROUP}/a/cpu.max": "200000 100000\n", f"{GROUP}/a/b/cpu.max": "max 100000\n"}
CPUS_1 = {f"{GROUP}/cpu/cpu.cfs_quota_us": "50000\n", f"{GROUP}/cpu/cpu.cfs_period_us": "100000\n"}


@pytest.mark.parametrize(
    ("files", "section", "facts"),
    [
        ({VENDOR: "Amazon EC2", PRODUCT: "c7g.metal"}, "machine", {"virtual": False, "hypervisor": None}),
        ({VENDOR: "Amazon EC2", PRODUCT: "c7g.2xlarge"}, "machine", {"virtual": True, "hypervisor": "Amazon EC2"}),
        ({"sys/hypervisor/type": "xen"}, "machine", {"virtual": True, "hypervisor": "Xen"}),
        ({"proc/sys/kernel/osrelease": "6.6-microsoft-standard"}, "machine", {"virtual": True, "hypervisor": "WSL"}),
        ({"proc/cpuinfo": f"{X86}flags\t\t: fpu hypervisor\n"}, "machine", {"virtual": True}),
        ({"proc/cpuinfo": f"{X86}flags\t\t: fpu\n"}, "machine", {"virtual": False, "hypervisor": None}),
        ({}, "machine", {"virtual": None}),
        ({LAYOUT: "0", PERSONALITY: "00000000"}, "process", {"aslr": False}),
        ({LAYOUT: "2", PERSONALITY: "00040000"}, "process", {"aslr": False}),
        ({LAYOUT: "1"}, "process", {"aslr": True}),
        ({HUGE_PAGES: "always [madvise] never"}, "memory", {"transparent_huge_pages": "madvise"}),
        ({f"{CPU}/isolated": "4-7\n", f"{CPU}/cpufreq/boost": "1"}, "cpu", {"isolated_cores": "4-7", "turbo": True}),
        ({"proc/cpuinfo": ARM}, "cpu", {"model": "Arm implementer 0x41, part 0xd40", "flags": ARM_FLAGS}),
        # A container's groups of version 2, where its parent's limit binds, and of version 1 with its own as the root.
        (
            {GROUPS: "0::/\n", **CPUS_2, f"{GROUP}/memory.max": "4294967296\n"},
            "process",
            {"cpu_limit_cores": 1.5, "cpu_throttled_periods": 12, "memory_limit_bytes": 4 * 2**30},
        ),
        (
            {GROUPS: "0::/a/b\n", **PARENTS, f"{GROUP}/a/b/memory.max": "max\n"},
            "process",
            {"cpu_limit_cores": 2.0, "cpu_throttled_periods": None, "memory_limit_bytes": None},
        ),
        (
            {
                GROUPS: "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n",
                **CPUS_1,
                f"{GROUP}/memory/memory.limit_in_bytes": "1073741824\n",
            },
            "process",
            {"cpu_limit_cores": 0.5, "memory_limit_bytes": 2**30},
        ),
    ],
)
def test_signs_of_one_thing(tmp_path: Path, files: dict[str, str], section: str, facts: dict[str, Any]) -> None:
    captured = capture_environment(root=machine_of(tmp_path, files))[section]
    assert {name: captured.get(name) for name in facts} == facts


def test_this_machine_is_described_well_enough_without_names_and_folders() -> None:
    captured = capture_environment()
    text = json.dumps(captured)
    assert json.loads(text) == captured
    assert not {platform.node(), getpass.getuser(), Path.home().name} & set(re.split(r"[^\w.-]+", text))
    assert not re.search(r'"/|\\', text)
    assert captured["cpu"]["logical_cores"] >= captured["cpu"]["usable_cores"] >= 1
    assert captured["memory"]["total_bytes"] > captured["memory"]["available_bytes"] > 0
    assert captured["process"]["python"] == platform.python_version()
    assert "load_1min" in captured["load"]
    assert isinstance(captured["process"]["niceness"], int)


@pytest.mark.parametrize(
    ("changed", "suffix"), [("notes.md", ""), ("harness/__init__.py", "+dirty"), ("harness/new.py", "+dirty")]
)
def test_the_commit_of_a_checkout_says_whether_its_code_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, suffix: str
) -> None:
    code = tmp_path / "harness/__init__.py"
    code.parent.mkdir()
    code.touch()
    git(tmp_path, "init", "--quiet")
    head = commit(tmp_path)
    monkeypatch.setattr(harness, "__file__", str(code))
    assert harness_commit() == head
    (tmp_path / changed).write_text("changed = True\n")
    assert harness_commit() == head + suffix


@pytest.mark.parametrize(
    ("direct_url", "commit"),
    [
        ('{"url": "https://github.com/o/r", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}', "c0ffee"),
        ('{"url": "file:///r", "dir_info": {"editable": true}}', ""),
    ],
)
def test_an_installed_package_has_the_commit_that_pip_took_it_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direct_url: str, commit: str
) -> None:
    metadata = tmp_path / "iree_harness-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: iree-harness\nVersion: 0.1.0\n")
    (metadata / "direct_url.json").write_text(direct_url)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(harness, "__file__", str(tmp_path / "harness" / "__init__.py"))
    assert harness_commit() == commit


# --- What a figure belongs to ---

AVX2 = "fpu sse4_2 avx avx2 fma hypervisor"
AVX512 = f"{AVX2} avx512f avx512vl avx512_vnni avx512_bf16"


def files_of(*, model: int = 1, flags: str = AVX2, l2: str = "512K", host: str = "vm") -> dict[str, str]:
    """A virtual machine of an image, as clouds make them: the processor is called `AMD EPYC` whichever it is."""
    block = f"processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: {model}\nmodel name\t: AMD EPYC\n"
    return {
        "etc/machine-id": "fedcba9876543210fedcba9876543210\n",
        "proc/sys/kernel/hostname": f"{host}\n",
        "proc/cpuinfo": f"{block}flags\t\t: {flags}\n",
        **cache_files(2, 2, "Unified", l2),
    }


ZEN_3, ZEN_4 = files_of(), files_of(model=17, flags=AVX512, l2="1M")


@pytest.mark.parametrize(
    ("other", "same_machine", "same_class"),
    [
        (ZEN_3, True, True),  # two that differ in nothing are one
        (ZEN_4, False, False),
        (files_of(flags=AVX512), False, False),
        (files_of(l2="1M"), False, False),
        (files_of(host="vm-2"), False, True),
        (ZEN_3 | {"etc/machine-id": "0123456789abcdef0123456789abcdef\n"}, False, True),
        (ZEN_3 | {"proc/sys/kernel/osrelease": "6.18.0\n"}, True, True),
    ],
)
def test_which_machines_are_one_and_which_of_one_class(
    tmp_path: Path, other: dict[str, str], *, same_machine: bool, same_class: bool
) -> None:
    first = capture_environment(root=machine_of(tmp_path, ZEN_3))
    second = capture_environment(root=machine_of(tmp_path, other))
    assert (machine_id(first) == machine_id(second)) is same_machine
    assert (machine_class(first) == machine_class(second)) is same_class
    if other["proc/cpuinfo"] != ZEN_3["proc/cpuinfo"]:
        assert processor_identity(first) != processor_identity(second), "what `host` means"


def test_a_name_that_the_user_gives_takes_the_place_of_the_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(name: str, host: str) -> dict[str, dict[str, Any]]:
        monkeypatch.setenv(NAME_VARIABLE, name)
        return capture_environment(root=machine_of(tmp_path, files_of(host=host)))

    rack, again, other = named("rack-7", "a"), named("rack-7", "b"), named("rack-8", "b")
    assert machine_id(rack) == machine_id(again) != machine_id(other)
    assert machine_class(rack) == machine_class(other)
    assert "rack" not in str(rack)


def test_the_compilers_name_for_a_processor_is_in_the_class_and_not_in_the_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    root = machine_of(tmp_path, ZEN_4)
    captured, silent = capture_environment(root=root, llvm_name=lambda _: "znver4"), capture_environment(root=root)
    words = "AMD EPYC (AuthenticAMD 25/17, znver4, AVX-512 BF16 VNNI)"
    assert machine_class(captured).startswith(f"{words}, 2 cores, L2 1 MiB, ")
    assert f"{words}, 2 cores" in describe_machine(captured)
    assert machine_class(silent) == machine_class(captured).replace(" znver4,", "")
    assert machine_id(silent) == machine_id(captured)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["avx", "avx2", "avx512f", "avx512_fp16", "avx512_vnni", "amx_tile"], "AVX-512 AMX FP16 VNNI"),
        (["asimd", "asimddp", "sve", "sve2", "i8mm", "bf16"], "SVE2 BF16 DotProd I8MM"),
        ([], ""),
    ],
)
def test_an_instruction_set_in_words(flags: list[str], words: str) -> None:
    assert instruction_set({"cpu": {"flags": flags}}) == words


# --- Runs that are older than these facts: they keep the words that they had ---

EPYC: dict[str, dict[str, Any]] = {
    "machine": {"id": "3f2a91c04b7e", "system": "Linux", "architecture": "x86_64", "kernel": "6.1.0", "virtual": True},
    "cpu": {"model": "AMD EPYC 7B13", "usable_cores": 2, "flags": ["avx2", "avx512f"], "l2_bytes": 2**20},
    "device_names": {"gpu": "NVIDIA H200"},
}
WORDS = "AMD EPYC 7B13, 2 cores, Linux x86_64 (virtual)"
ODD = {"cpu": {"model": "a\nb\x1b[31m", "usable_cores": {"x": 1}}}


@pytest.mark.parametrize(
    ("environment", "device", "words"),
    [
        (EPYC, "", WORDS),  # whatever kernel it has, so that its effect is seen
        (EPYC, "gpu", f"{WORDS}, NVIDIA H200"),
        ({}, "", "a machine of which nothing is known"),
        (ODD, "", "a b, {'x': 1} cores"),
    ],
)
def test_a_class_of_machines_in_words(environment: dict[str, dict[str, Any]], device: str, words: str) -> None:
    assert machine_class(environment, device) == words
