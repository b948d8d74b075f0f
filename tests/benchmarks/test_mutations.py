"""The benchmark that puts faults into the source: what it calls caught, and that it leaves the source alone."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import harness
from benchmarks.mutations.__main__ import TABLE, table, try_all
from benchmarks.mutations.trial import Mutation, read_table

FILES: Mapping[str, str] = {
    "ages.py": "def grown(age: int) -> bool:\n    return age >= 18\n",
    "test_ages.py": "from ages import grown\n\ndef test_at_eighteen() -> None:\n    assert grown(18)\n",
    "test_broken.py": "def test_always_fails() -> None:\n    assert False\n",
}
FAULTS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "caught": ("age >= 18", "age > 18", ("test_ages.py",)),
    "survived": ("age >= 18", "age >= 17", ("test_ages.py",)),
    "broken": ("age >= 18", "age > 18", ("test_broken.py",)),  # its test fails without the fault too
    "stale": ("age > 20", "age > 18", ("test_ages.py",)),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_fault_is_caught_by_a_test_that_passes_without_it(root: Path) -> None:
    mutations = [
        Mutation(id=id_, breaks="who is grown up", file="ages.py", text=text, replacement=replacement, tests=tests)
        for id_, (text, replacement, tests) in FAULTS.items()
    ]
    trials = try_all(mutations, root, jobs=2, limit_s=60)
    assert {trial.mutation.id: trial.fate for trial in trials} == {
        "caught": "caught",
        "survived": "survived",
        "broken": "survived",
        "stale": "stale",
    }
    assert trials[0].noticed_by == "test_ages.py::test_at_eighteen"
    assert table(trials).splitlines()[2] == "| caught | who is grown up | caught |"
    assert table(trials).endswith("1 of 4 are caught.")
    assert {file.name: file.read_text() for file in root.glob("*.py")} == FILES


def test_the_table_has_sixty_faults_each_of_its_own() -> None:
    mutations = read_table(TABLE)
    assert len({mutation.id for mutation in mutations}) == len(mutations) == 60
    assert all(mutation.text != mutation.replacement for mutation in mutations)
    root = Path(harness.__file__).parents[1]
    assert {mutation.id: (root / mutation.file).read_text().count(mutation.text) for mutation in mutations} == {
        mutation.id: 1 for mutation in mutations
    }
