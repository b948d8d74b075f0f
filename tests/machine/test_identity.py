"""What a figure belongs to: which machines are one, which are of one class, and in which words."""

import os
import re
from typing import Any

import pytest

from harness.machine.environment import capture_environment
from harness.machine.identity import (
    NAME_VARIABLE,
    describe_machine,
    instruction_set,
    machine_class,
    machine_id,
    processor,
    processor_identity,
)
from tests.machine.conftest import MakeMachine, cache_files

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


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


@pytest.mark.parametrize(
    ("other", "same_machine", "same_class"),
    [
        (ZEN_3, True, True),  # two that differ in nothing are one
        (ZEN_4, False, False),
        (files_of(model=8), False, False),
        (files_of(flags=AVX512), False, False),
        (files_of(l2="1M"), False, False),
        (files_of(host="vm-2"), False, True),
        (ZEN_3 | {"etc/machine-id": "0123456789abcdef0123456789abcdef\n"}, False, True),
        (ZEN_3 | {"proc/sys/kernel/osrelease": "6.18.0\n"}, True, True),
    ],
)
def test_which_machines_are_one_and_which_of_one_class(
    make_machine: MakeMachine, other: dict[str, str], *, same_machine: bool, same_class: bool
) -> None:
    first = capture_environment(root=make_machine(ZEN_3))
    second = capture_environment(root=make_machine(other))
    assert (machine_id(first) == machine_id(second)) is same_machine
    assert (machine_class(first) == machine_class(second)) is same_class
    if other["proc/cpuinfo"] != ZEN_3["proc/cpuinfo"]:
        assert processor_identity(first) != processor_identity(second), "what `host` means"


def test_a_machine_of_which_fewer_cores_may_be_used_is_another(
    make_machine: MakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = capture_environment(root=make_machine(ZEN_3))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    second = capture_environment(root=make_machine(ZEN_3))
    assert (machine_id(first) != machine_id(second), machine_class(first) != machine_class(second)) == (True, True)


@pytest.mark.parametrize("image", ["", "uninitialized\n"])
def test_an_id_tells_nothing_and_of_an_image_without_one_the_hosts_name_counts(
    make_machine: MakeMachine, image: str
) -> None:
    first, second = (
        machine_id(capture_environment(root=make_machine({"etc/machine-id": image, "proc/sys/kernel/hostname": host})))
        for host in ("lab-3\n", "lab-4\n")
    )
    assert re.fullmatch("[0-9a-f]{12}", first)
    assert first != second
    (make_machine({}) / "etc/machine-id").unlink()
    assert machine_id(capture_environment(root=make_machine({}))) == second


def test_a_name_that_the_user_gives_takes_the_place_of_the_hosts(
    make_machine: MakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(name: str, host: str) -> dict[str, dict[str, Any]]:
        monkeypatch.setenv(NAME_VARIABLE, name)
        return capture_environment(root=make_machine(files_of(host=host)))

    rack, again, other = named("rack-7", "a"), named("rack-7", "b"), named("rack-8", "b")
    assert machine_id(rack) == machine_id(again) != machine_id(other)
    assert machine_class(rack) == machine_class(other)
    assert "rack" not in str(rack)


def test_the_compilers_name_for_a_processor_is_in_the_class_and_not_in_the_id(make_machine: MakeMachine) -> None:
    asked: list[str] = []
    root = make_machine(ZEN_4)

    def named(identity: str) -> str:
        asked.append(identity)
        return "znver4"

    captured = capture_environment(root=root, llvm_name=named)
    silent = capture_environment(root=root)
    assert asked == [processor_identity(silent)]
    words = "AMD EPYC (AuthenticAMD 25/17, znver4, AVX-512 BF16 VNNI)"
    assert machine_class(captured).startswith(f"{words}, 2 cores, L2 1 MiB, ")
    assert f"{words}, 2 cores" in describe_machine(captured)
    assert machine_class(silent) == machine_class(captured).replace(" znver4,", "")
    assert machine_id(silent) == machine_id(captured)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["avx", "avx2", "avx512f", "avx512_fp16", "avx512_vnni", "amx_tile"], "AVX-512 AMX FP16 VNNI"),
        (["avx", "avx2", "fma", "avx_vnni"], "AVX2 VNNI"),
        (["sse4_2"], "SSE4.2"),
        (["asimd", "asimddp", "sve", "sve2", "i8mm", "bf16"], "SVE2 BF16 DotProd I8MM"),
        ([], ""),
        (7, ""),
    ],
)
def test_an_instruction_set_in_words(flags: Any, words: str) -> None:
    assert instruction_set({"cpu": {"flags": flags}}) == words


# --- Runs that are older than these facts: they keep the words that they had ---

EPYC: dict[str, dict[str, Any]] = {
    "machine": {"id": "3f2a91c04b7e", "system": "Linux", "architecture": "x86_64", "kernel": "6.1.0", "virtual": True},
    "cpu": {"model": "AMD EPYC 7B13", "usable_cores": 2},
}
WORDS = "AMD EPYC 7B13, 2 cores, Linux x86_64 (virtual)"


@pytest.mark.parametrize(
    ("changes", "device", "words"),
    [
        ({}, "", WORDS),
        ({"cpu": {"usable_cores": 1}}, "", WORDS.replace("2 cores", "1 core")),
        ({"cpu": {"flags": ["avx2", "avx512f"], "l2_bytes": 2**20}}, "", WORDS),
        # Another kernel, or another machine of the same kind, is the same class, so that its effect is seen.
        ({"machine": {"kernel": "6.18.0", "id": "0123456789ab"}}, "", WORDS),
        ({"device_names": {"gpu": "NVIDIA H200"}}, "gpu", f"{WORDS}, NVIDIA H200"),
        ({"device_names": {"gpu": "NVIDIA H200"}}, "cpu", WORDS),
    ],
)
def test_a_class_of_machines_in_words(changes: dict[str, dict[str, Any]], device: str, words: str) -> None:
    environment = {name: {**EPYC.get(name, {}), **changes.get(name, {})} for name in {**EPYC, **changes}}
    assert machine_class(environment, device) == words


def test_an_environment_that_says_little_or_what_is_odd_has_words_too() -> None:
    assert processor({"cpu": {"model": "AMD EPYC 7B13", "flags": ["avx512f"]}}) == "AMD EPYC 7B13 (AVX-512)"
    assert processor({"cpu": {}}) == ""
    assert machine_class({}) == "a machine of which nothing is known"
    assert machine_class({"cpu": {"model": "a\nb\x1b[31m", "usable_cores": {"x": 1}}}) == "a b, {'x': 1} cores"
