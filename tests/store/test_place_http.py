"""A results folder behind a real web server, where listings are pages of links without sizes or times."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.store.remote import open_place
from harness.store.run_directory import RunDirectory
from tests.builders import make_header
from tests.store.made import a_comparison, a_run, contents

pytest.importorskip("aiohttp")  # what fsspec reads http:// with


class _Quiet(SimpleHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012 (of the whole server)

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of `tmp_path / "results"`."""
    (tmp_path / "results").mkdir()
    handler = partial(_Quiet, directory=str(tmp_path / "results"))
    _Quiet.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_folders_come_as_they_are_and_once(tmp_path: Path, url: str) -> None:
    results = tmp_path / "results"
    a_run(results)
    a_comparison(results)
    with RunDirectory.create(results, make_header()) as directory:  # names that a URL has to quote
        directory.log("net/a+b,c@cpu", "a tool's words")
        directory.finish(lambda _: "")
    place = open_place(url)
    place.fetch()
    assert place.refused == {}
    assert {name: data for name, data in contents(place.local).items() if "/." not in f"/{name}"} == contents(results)
    _Quiet.asked.clear()
    open_place(url).fetch()
    assert not [path for path in _Quiet.asked if path.endswith((".json", ".jsonl", ".md", ".txt"))]


def test_nobody_who_answers_is_not_nothing_there(url: str) -> None:
    with pytest.raises(RunError, match=r"^http://127\.0\.0\.1:\d+/gone: there is nothing there; give a folder"):
        open_place(f"{url}/gone").names()
    with socket.socket() as unused:  # bound, but nobody listens
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/x"
        with pytest.raises(RunError, match=r"/x: cannot be reached \(.*Connect.*\); check the address, the network"):
            open_place(address).names()


def test_a_listing_that_never_ends_is_not_read_to_its_end(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(self: _Quiet) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b'<a href="20260101-000000-x/run.json">x</a>' * 10_000)

    monkeypatch.setattr(_Quiet, "do_GET", endless)
    monkeypatch.setattr("harness.store.remote.PAGE_LIMIT_BYTES", 2**20)
    with pytest.raises(RunError) as caught:
        open_place(f"{url}/results").names()
    assert str(caught.value) == f"{url}/results: lists more than 1 MiB; look at what it is"
