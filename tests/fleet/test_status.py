"""What `harness fleet status` makes of a scheduler's facts."""

import json

import pytest

from harness.fleet.status import fleet_now, offer_page, status_json, status_page
from harness.report.markdown import to_markdown
from harness.report.terminal import to_terminal
from tests.fleet.hosts import make_facts, make_offer, told

_BUSY = told(make_offer("host-a"), doing=[["measure", "mlp@cpu", 975.0], ["compile", "rdb/stock@cpu", 990.0]])
_SILENT = told(make_offer("host-b"), unseen_s=40.0)
_OTHER = told(make_offer("worker-9"), offer=None)
_FACTS = make_facts(
    _BUSY,
    _SILENT,
    _OTHER,
    dashboard="http://127.0.0.1:8787/status",
    clients=1,
    waits=[
        {"why": "all hosts that may do it compile or measure", "count": 12, "first": ["compile a", "compile b"]},
        {"why": "its host host-d has gone, and may come back", "count": 1, "first": ["mlp@hip"]},
    ],
)


def test_hosts_what_each_does_and_what_waits() -> None:
    page = to_terminal(status_page(fleet_now(_FACTS, "tls://bench:8786")), width=200, color=False)
    lines = [" ".join(line.split()) for line in page.splitlines()]
    assert lines[0] == "tls://bench:8786: 2 hosts, 1 at work; 1 run connected; 13 waiting."
    text = " ".join(lines)
    for sentence in (
        "worker-9: a Dask worker, and no host of the harness; start it with `harness fleet worker`",
        "znver3 measures mlp@cpu, for 20 s; compiles rdb/stock@cpu, for 10 s host-b",
        "class: host-a, host-b AMD EPYC 7B13, 8 cores, Linux",
        "znver3 nothing (silent for 40 s)",
        "CPU, NVIDIA H100",
        "compile a, compile b, 10 more 12 all hosts that may do it compile or measure",
        "mlp@hip 1 its host host-d has gone, and may come back",
        "http://127.0.0.1:8787/status",
    ):
        assert sentence in text
    assert "| `host-a` |" in to_markdown(status_page(fleet_now(_FACTS, "tls://bench:8786")))


@pytest.mark.parametrize("width", [80, 100, 120])
def test_devices_and_what_hosts_do_have_room(width: int) -> None:
    page = to_terminal(status_page(fleet_now(_FACTS, "tls://bench:8786")), width=width, color=False)
    assert "CPU, NVIDIA H100" in page
    assert "measures mlp@cpu, for 20 s; compiles rdb/stock@cpu" in page


def test_json_has_the_same() -> None:
    document = json.loads(status_json(fleet_now(_FACTS, "tls://bench:8786")))
    assert document["schema_version"] == 1
    assert [host["name"] for host in document["hosts"]] == ["host-a", "host-b"]
    assert document["hosts"][0]["doing"][0] == {"what": "measure", "of": "mlp@cpu", "seconds": 25.0}
    assert document["hosts"][0]["devices"] == [{"driver": "cuda", "uri": "cuda://GPU-1", "name": "NVIDIA H100"}]
    assert document["refused"][0]["host"] == "worker-9"
    assert sum(each["count"] for each in document["waiting"]) == 13


def test_an_empty_fleet_says_what_to_do() -> None:
    page = status_page(fleet_now(make_facts(), "tls://bench:8786"))
    assert page.verdict == (
        "tls://bench:8786: no host, start one with `harness fleet worker`; no run connected; nothing waits."
    )


def test_a_host_shows_what_it_offers() -> None:
    text = to_terminal(offer_page(make_offer()), width=80, color=False)
    assert "- devices: CPU, NVIDIA H100" in text
    assert "IREE 3.13.0, where host is znver3" in text
