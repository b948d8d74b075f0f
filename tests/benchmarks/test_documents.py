"""Each benchmark writes its tables between two marks of a document, which has them once."""

from pathlib import Path

import pytest

from benchmarks import bisect
from benchmarks.explain import __main__ as explain
from benchmarks.fleet import __main__ as fleet
from benchmarks.plugins import __main__ as plugins
from benchmarks.tune import __main__ as tune
from benchmarks.tune import first

DOCS = Path(__file__).parents[2] / "docs"
MARKS = [
    ("bisect.md", bisect.BEGIN, bisect.END),
    ("explain.md", explain.BEGIN, explain.END),
    ("tuning.md", tune.BEGIN, tune.END),
    *(("tuning.md", *first.marks_of(vectors)) for vectors in ("AVX2", "AVX-512")),
    *((fleet.DOCUMENT.name, fleet.mark(part, "begin"), fleet.mark(part, "end")) for part in fleet.PARTS),
    *(("seeds.md", f"<!-- {mark} -->", f"<!-- /{mark} -->") for mark in plugins.SUITES),
]


@pytest.mark.parametrize(("document", "begin", "end"), MARKS)
def test_a_document_has_a_place_for_tables(document: str, begin: str, end: str) -> None:
    text = (DOCS / document).read_text()
    assert text.count(begin) == text.count(end) == 1
    assert text.index(begin) < text.index(end)
