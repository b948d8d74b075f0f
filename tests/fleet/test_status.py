"""What `harness fleet status` makes of a scheduler's facts."""

import json

from harness.fleet.status import fleet_now, offer_page, status_json, status_page
from harness.report.terminal import to_terminal
from tests.fleet.hosts import make_facts, make_offer, told

_NOW = fleet_now(
    make_facts(
        told(make_offer("host-a"), doing=[["compile rdb/stock@cpu #7", 10.0], ["measure mlp@cpu #6", 25.0]]),
        told(make_offer("host-b"), unseen_s=40.0),
        told(make_offer("worker-9"), offer=None),
        dashboard="http://127.0.0.1:8787/status",
        clients=1,
        waits=[
            {"why": "its host host-b is busy", "count": 12, "first": ["compile a", "compile b"]},
            {"why": "its host host-d has gone, and may come back", "count": 1, "first": ["mlp@hip"]},
        ],
    ),
    "tls://bench:8786",
)


def test_hosts_what_each_does_and_what_waits() -> None:
    page = to_terminal(status_page(_NOW), width=200, color=False)
    lines = [" ".join(line.split()) for line in page.splitlines()]
    assert lines[0] == "tls://bench:8786: 2 hosts, 1 at work; 1 run connected; 13 waiting."
    text = " ".join(lines)
    for sentence in (
        "worker-9: a Dask worker, and no host of the harness; start it with `harness fleet worker`",
        "compile rdb/stock@cpu, for 10 s; measure mlp@cpu, for 20 s",
        "nothing (silent for 40 s)",
        "AMD EPYC 7B13, 8 cores, Linux",
        "CPU, NVIDIA H100",
        "compile a, compile b, 10 more 12 its host host-b is busy",
        "mlp@hip 1 its host host-d has gone, and may come back",
        "http://127.0.0.1:8787/status",
    ):
        assert sentence in text


def test_json_has_the_same() -> None:
    document = json.loads(status_json(_NOW))
    assert document["schema_version"] == 1
    assert [host["name"] for host in document["hosts"]] == ["host-a", "host-b"]
    assert document["hosts"][0]["doing"][1] == {"what": "measure mlp@cpu", "seconds": 25.0}
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
