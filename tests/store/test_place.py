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


def test_a_local_folder_is_read_where_it_lies(results: Path) -> None:
    names = [*runs(results, 2), a_comparison(results).name, an_unfinished_run(results).name]
    (results / "pictures").mkdir()
    (results / "published" / "small").mkdir(parents=True)
    place = opened(str(results))
    assert (place.local, place.names(), place.refused) == (results, sorted(names), {})


def test_a_url_is_mirrored_with_all_that_belongs_to_a_run_and_each_folder_once(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    real = MemoryFileSystem._open

    def opening(self: MemoryFileSystem, path: str, mode: str = "rb", *args: Any, **kwargs: Any) -> Any:
        if mode == "rb":
            fetched.append(path.split("/")[3])
        return real(self, path, mode, *args, **kwargs)

    monkeypatch.setattr(MemoryFileSystem, "_open", opening)
    first, second = runs(results, 2)
    expected = contents(results)
    (results / first / "notes.txt").write_text("mine")
    upload(results)
    place = open_place(URL)
    assert place.names() == [first, second]
    assert place.local.is_relative_to(cache_root() / "places")
    place.fetch([first])
    assert set(fetched) == {first}
    opened(URL)
    fetched.clear()
    assert mirrored(opened(URL)) == expected
    assert fetched == []


def test_a_run_that_went_on_is_fetched_anew_and_one_that_is_gone_is_forgotten(results: Path) -> None:
    unfinished, gone = an_unfinished_run(results).name, a_run(results).name
    upload(results)
    opened(URL)
    more = contents(results)[f"{unfinished}/rounds.jsonl"] * 3
    MEMORY.pipe_file(f"/bucket/results/{unfinished}/rounds.jsonl", more)
    MEMORY.rm(f"/bucket/results/{gone}", recursive=True)
    place = opened(URL)
    assert (place.local / unfinished / "rounds.jsonl").read_bytes() == more
    assert not (place.local / gone).exists()


def test_a_fetch_that_was_stopped_leaves_no_half_folder(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = a_run(results).name
    upload(results)
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
    assert mirrored(opened(URL)) == contents(results)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/cron.d/run.json",
        "20260101-000000-a/logs/../../x.txt",
        "20260101-000000-a\\..\\evil/run.json",
        "a\nb/run.json",
        "a" * 10_000 + "/run.json",
    ],
)
def test_names_that_lead_elsewhere_are_never_written(results: Path, name: str) -> None:
    good = a_run(results).name
    upload(results)
    MemoryFileSystem.store[f"/bucket/results/{name}"] = MemoryFileSystem.store[f"/bucket/results/{good}/run.json"]
    place = opened(URL)
    assert place.names() == [good]
    assert mirrored(place) == contents(results)
    assert {path.name for path in (cache_root() / "places").iterdir()} == {place.local.name}
    assert all("\n" not in why for why in place.refused.values())


def test_a_folder_that_is_too_large_is_not_fetched(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = a_run(results).name
    upload(results)
    monkeypatch.setattr("harness.store.place.FOLDER_LIMIT_BYTES", 1000)
    place = opened(URL)
    assert "is not fetched" in place.refused[name]
    assert mirrored(place) == {}
    with pytest.raises(RunError, match=r"is there, but .* is not fetched"):  # so nobody knows whether it is the same
        place.put(results / name, nothing)


def test_a_folder_is_put_whole_with_what_finishes_it_last_and_never_over_another(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, compared = a_run(results), a_comparison(results)
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
    whole = {name: data for name, data in contents(results).items() if "/tables/" not in name}
    assert mirrored(opened(URL)) == whole
    assert not place.put(run, nothing)
    (run / "report.md").write_text("# Another\n")
    with pytest.raises(RunError, match="is there already with other content; compare the two"):
        place.put(run, nothing)


def test_a_zip_file_is_a_place_and_a_link_behind_a_url_refuses_its_folder(results: Path, tmp_path: Path) -> None:
    good, bad = runs(results, 2)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name, content in contents(results).items():
            archive.writestr(f"deep/{name}", content)
    assert mirrored(opened(f"zip://deep::{tmp_path / 'all.zip'}")) == contents(results)
    (results / bad / "report.md").unlink()
    (results / bad / "report.md").symlink_to("/etc/passwd")
    place = open_place(f"file://{results}")
    assert place.names() == [good]
    assert place.refused == {bad: "report.md is a symbolic link, which is not followed"}


def missing(_: str) -> None:
    raise ImportError("Install s3fs to access S3")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("nosuch://x", "nosuch://x: Protocol not known: nosuch; install what it needs, or give a path or another URL"),
        ("memory://nothing", "memory://nothing: there is nothing there; give a folder that holds runs"),
        ("gone", "gone: there is no such folder; give one that holds runs"),
        ("zip://::gone.zip", "zip://::gone.zip: cannot be read (FileNotFoundError: "),
        ("s3://user:secret@host/x", "s3://...@host/x: Install s3fs to access S3; install what it needs, or give"),
    ],
)
def test_places_that_are_not_there_are_one_sentence(address: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if address.startswith("s3"):
        monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises((RunError, UsageError)) as caught:
        open_place(address).names()
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


# --- A real web server, where listings are pages of links without sizes or times ---


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def url(results: Path, asked: list[str]) -> Iterator[str]:
    """The address of the results folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    results.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(results))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_folders_come_as_they_are_and_once(results: Path, url: str, asked: list[str]) -> None:
    a_run(results)
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
