"""Places: a local folder is read where it lies, and a URL is mirrored, each finished folder once."""

import socket
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from harness.cache import cache_root
from harness.errors import RunError, UsageError
from harness.store.place import Place, open_place
from harness.store.run_directory import RunDirectory
from tests.builders import make_header
from tests.store.made import a_comparison, a_run, an_unfinished_run, contents, runs

URL = "memory://bucket/results"
MEMORY = MemoryFileSystem()


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folder of every file that is read from memory, in order."""
    read: list[str] = []
    real = MemoryFileSystem._open

    def opened(self: MemoryFileSystem, path: str, mode: str = "rb", *args: Any, **kwargs: Any) -> Any:
        if mode == "rb":
            read.append(path.split("/")[3])
        return real(self, path, mode, *args, **kwargs)

    monkeypatch.setattr(MemoryFileSystem, "_open", opened)
    return read


def upload(folder: Path) -> None:
    """Put a results folder into memory as it is."""
    for name, content in contents(folder).items():
        MEMORY.pipe_file(f"/bucket/results/{name}", content)


def opened(address: str) -> Place:
    place = open_place(address)
    place.fetch()
    return place


def mirrored(place: Place) -> dict[str, bytes]:
    """A mirror without what the mirror itself keeps there."""
    return {name: data for name, data in contents(place.local).items() if "/." not in f"/{name}"}


def nothing(_: Path) -> None:
    """Of a copy that need not be looked at."""


def test_a_local_folder_is_read_where_it_lies(tmp_path: Path) -> None:
    results = tmp_path / "results"
    names = [*runs(results, 2), a_comparison(results).name, an_unfinished_run(results).name]
    (results / "pictures").mkdir()
    (results / "published" / "small").mkdir(parents=True)
    for address in (str(results), f"file://{results}", f"local://{results}"):
        place = opened(address)
        assert (place.local, place.names(), place.refused) == (results, sorted(names), {})


def test_a_url_is_mirrored_with_all_that_belongs_to_a_run_and_each_folder_once(
    tmp_path: Path, fetched: list[str]
) -> None:
    first, second = runs(tmp_path / "results", 2)
    expected = contents(tmp_path / "results")
    (tmp_path / "results" / first / "notes.txt").write_text("mine")
    upload(tmp_path / "results")
    place = open_place(URL)
    assert place.names() == [first, second]
    assert place.local.is_relative_to(cache_root() / "places")
    place.fetch([first])
    assert set(fetched) == {first}
    opened(URL)
    assert set(fetched) == {first, second}
    fetched.clear()
    assert mirrored(opened(URL)) == expected
    assert fetched == []


def test_a_run_that_went_on_is_fetched_anew_and_one_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    unfinished, gone = an_unfinished_run(tmp_path / "results").name, a_run(tmp_path / "results").name
    upload(tmp_path / "results")
    opened(URL)
    more = contents(tmp_path / "results")[f"{unfinished}/rounds.jsonl"] * 3
    MEMORY.pipe_file(f"/bucket/results/{unfinished}/rounds.jsonl", more)
    MEMORY.rm(f"/bucket/results/{gone}", recursive=True)
    place = opened(URL)
    assert (place.local / unfinished / "rounds.jsonl").read_bytes() == more
    assert not (place.local / gone).exists()


def test_a_fetch_that_was_stopped_leaves_no_half_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = a_run(tmp_path / "results").name
    upload(tmp_path / "results")
    real = MemoryFileSystem._open

    def breaks(self: MemoryFileSystem, path: str, *args: Any, **kwargs: Any) -> Any:
        if path.endswith("report.md"):
            raise ConnectionResetError("the line went dead")
        return real(self, path, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "_open", breaks)
        place = opened(URL)
    said = f"{URL}: cannot be read (ConnectionResetError: the line went dead); check"
    assert place.refused[name].startswith(said)
    assert mirrored(place) == {}
    assert mirrored(opened(URL)) == contents(tmp_path / "results")


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/cron.d/run.json",
        "20260101-000000-a/logs/../../x.txt",
        "20260101-000000-a\\..\\evil/run.json",
        "a\nb/run.json",
        "😀|`<script>/run.json",
        "a" * 10_000 + "/run.json",
    ],
)
def test_names_that_lead_elsewhere_are_never_written(tmp_path: Path, name: str) -> None:
    good = a_run(tmp_path / "results").name
    upload(tmp_path / "results")
    MemoryFileSystem.store[f"/bucket/results/{name}"] = MemoryFileSystem.store[f"/bucket/results/{good}/run.json"]
    place = opened(URL)
    assert place.names() == [good]
    assert mirrored(place) == contents(tmp_path / "results")
    assert {path.name for path in (tmp_path / "cache" / "places").iterdir()} == {place.local.name}
    assert all("\n" not in why for why in place.refused.values())


def test_a_folder_that_is_too_large_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = a_run(tmp_path / "results").name
    upload(tmp_path / "results")
    monkeypatch.setattr("harness.store.place.FOLDER_LIMIT_BYTES", 1000)
    place = opened(URL)
    assert "is not fetched" in place.refused[name]
    assert mirrored(place) == {}
    with pytest.raises(RunError, match=r"is there, but .* is not fetched"):  # so nobody knows whether it is the same
        place.put(tmp_path / "results" / name, nothing)


def test_a_folder_is_put_whole_with_what_finishes_it_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, compared = a_run(tmp_path / "results"), a_comparison(tmp_path / "results")
    written: list[str] = []
    real = MemoryFileSystem.put_file

    def noted(self: MemoryFileSystem, local: str, remote: str, *args: Any, **kwargs: Any) -> Any:
        written.append(remote.rsplit("/", 1)[1])
        return real(self, local, remote, *args, **kwargs)

    monkeypatch.setattr(MemoryFileSystem, "put_file", noted)
    place = open_place(URL)
    assert place.put(run, nothing)
    assert written[-1] == "finished.json"
    assert place.put(compared, nothing)
    assert written[-2:] == ["finished.json", "comparison.json"]
    assert place.names() == sorted([run.name, compared.name])
    whole = {name: data for name, data in contents(tmp_path / "results").items() if "/tables/" not in name}
    assert mirrored(opened(URL)) == whole


@pytest.mark.parametrize("address", [URL, "local"])
def test_putting_the_same_again_does_nothing_and_another_one_is_refused(tmp_path: Path, address: str) -> None:
    run = a_run(tmp_path / "results")
    place = open_place(str(tmp_path / "there") if address == "local" else address)
    assert [place.put(run, nothing) for _ in range(2)] == [True, False]
    (run / "report.md").write_text("# Another\n")
    with pytest.raises(RunError, match="is there already with other content; compare the two"):
        place.put(run, nothing)


def test_a_zip_file_and_a_folder_within_a_place_are_places(tmp_path: Path) -> None:
    runs(tmp_path / "results", 2)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name, content in contents(tmp_path / "results").items():
            archive.writestr(f"deep/{name}", content)
            archive.writestr(name, content)
    for address in (
        f"zip://::{tmp_path / 'all.zip'}",
        f"zip://deep::{tmp_path / 'all.zip'}",
        f"dir::file://{tmp_path / 'results'}",
        f"dir://results::file://{tmp_path}",
    ):
        assert mirrored(opened(address)) == contents(tmp_path / "results")


def test_a_link_behind_a_url_refuses_its_folder(tmp_path: Path) -> None:
    good, bad = runs(tmp_path / "results", 2)
    (tmp_path / "results" / bad / "report.md").unlink()
    (tmp_path / "results" / bad / "report.md").symlink_to("/etc/passwd")
    place = open_place(f"dir::file://{tmp_path / 'results'}")
    assert place.names() == [good]
    assert place.refused == {bad: "report.md is a symbolic link, which is not followed"}


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("nosuch://x", "nosuch://x: Protocol not known: nosuch; give a path, or a URL of fsspec"),
        ("memory://nothing", "memory://nothing: there is nothing there; give a folder that holds runs"),
        ("gone", "gone: there is no such folder; give one that holds runs"),
        ("zip://::gone.zip", "zip://::gone.zip: cannot be read (FileNotFoundError: "),
    ],
)
def test_places_that_are_not_there_are_one_sentence(address: str, told: str) -> None:
    with pytest.raises((RunError, UsageError)) as caught:
        open_place(address).names()
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_what_is_not_installed_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str, **__: Any) -> None:
        raise ImportError("Install something")

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    for address, package in (("s3://b/c", "s3fs"), ("https://user:secret@host/x", "aiohttp")):
        with pytest.raises(UsageError) as caught:
            open_place(address)
        said = f"needs the package {package}, which is not installed: pip install {package}"
        assert str(caught.value).endswith(said)
        assert "secret" not in str(caught.value)


# --- A real web server, where listings are pages of links without sizes or times ---


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def url(tmp_path: Path, asked: list[str]) -> Iterator[str]:
    """The address of `tmp_path / "results"`."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    (tmp_path / "results").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "results"))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_folders_come_as_they_are_and_once(tmp_path: Path, url: str, asked: list[str]) -> None:
    results = tmp_path / "results"
    a_run(results)
    a_comparison(results)
    with RunDirectory.create(results, make_header()) as directory:  # names that a URL has to quote
        directory.log("net/a+b,c@cpu", "a tool's words")
        directory.finish(lambda _: "")
    place = opened(url)
    assert place.refused == {}
    assert mirrored(place) == contents(results)
    asked.clear()
    opened(url)
    assert asked and not [path for path in asked if path.endswith((".json", ".jsonl", ".md", ".txt"))]


def test_nobody_who_answers_is_not_nothing_there(url: str) -> None:
    with pytest.raises(RunError, match=r"^http://127\.0\.0\.1:\d+/gone: there is nothing there; give a folder"):
        open_place(f"{url}/gone").names()
    with socket.socket() as unused:  # bound, but nobody listens
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/x"
        with pytest.raises(RunError, match=r"/x: cannot be reached \(.*Connect.*\); check the address, the network"):
            open_place(address).names()
