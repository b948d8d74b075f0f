"""A small GitHub on this machine behind a real HTTP server.

It has comments, pull requests, issues, git objects, commits, and workflow runs with what they kept, which lies on
another host, to which the API leads.

A test scripts faults, each for the next request that matches it: this `answer` instead of what was asked for, the
connection's `reset`, the same once it was done (`lost`), a server that does not speak (`hang`).
"""

import contextlib
import hashlib
import itertools
import json
import re
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

BOT = "github-actions[bot]"
Response = tuple[int, Any, dict[str, str]]
NOT_FOUND: Response = (404, {"message": "Not Found"}, {})
SHA = "a" * 40


def workflow_run(*numbers: int, owner: str = "o", base_id: int = 1, **changes: Any) -> dict[str, Any]:
    """The payload of a finished run of the untrusted workflow."""
    run = {
        "event": "pull_request",
        "pull_requests": [{"number": number, "base": {"repo": {"id": base_id}}} for number in numbers],
        "head_repository": {"owner": {"login": owner}},
        "head_branch": "topic",
        "head_sha": SHA,
        "html_url": "https://github.com/o/r/actions/runs/5",
    }
    return {"repository": {"full_name": "o/r", "id": 1}, "workflow_run": {**run, **changes}}


def pull_request(number: int, **head: Any) -> dict[str, Any]:
    """The payload of a pull request's own event."""
    whole = {"repo": {"owner": {"login": "o"}}, "ref": "topic", "sha": SHA, **head}
    return {"repository": {"full_name": "O/R"}, "pull_request": {"number": number, "head": whole}}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to the next request of this method whose path holds this text."""

    method: str
    path: str
    kind: str = "answer"
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = '{"message": "it is broken"}'


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    document: Any


class FakeGitHub(ThreadingHTTPServer):
    """The server, and what is on it, which every repository shows."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.login: str | None = None  # of a person's token; a workflow's may not ask
        self.page_size = 100
        self.comments: list[dict[str, Any]] = []
        self.issues: list[dict[str, Any]] = []
        self.pulls: list[dict[str, Any]] = []
        self.objects: dict[str, dict[str, Any]] = {}
        self.branches: dict[str, str] = {}
        self.commits: list[str] = []  # Of main, the oldest first
        self.branch_of: dict[str, str] = {}  # From which commit of main others began
        self.runs: list[dict[str, Any]] = []  # The newest first
        self.artifacts: list[dict[str, Any]] = []  # The newest first
        self.archives: dict[int, bytes] = {}
        self.storage = f"http://localhost:{self.server_port}/storage"
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.over = threading.Event()
        self._next = 1000
        self._numbers = itertools.count(1)

    # --- What tests put there and look at ---

    def fail(self, method: str, path: str, kind: str = "answer", *, times: int = 1, **fields: Any) -> None:
        """Script a fault."""
        self.faults += [Fault(method=method, path=path, kind=kind, **fields)] * times

    def limit(self, method: str, path: str, status: int = 403, **headers: str) -> None:
        """Script a rate limit."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.fail(method, path, status=status, headers=named, body='{"message": "You have exceeded a rate limit"}')

    def comment(self, body: str, login: str = BOT) -> dict[str, Any]:
        """Add a comment to pull request 7."""
        return self._added(self.comments, body, login)

    def pull(self, number: int, sha: str, *, owner: str = "o", branch: str = "topic", state: str = "open") -> None:
        """Add a pull request."""
        head = {"sha": sha, "ref": branch, "label": f"{owner}:{branch}"}
        base = {"sha": self.commits[-1] if self.commits else SHA, "ref": "main", "label": "o:main"}
        self.pulls.append({"number": number, "state": state, "merged": False, "head": head, "base": base})

    def ran(self, sha: str, *, event: str = "push", conclusion: str | None = "success", path: str = "pkgci.yml") -> int:
        """Add a workflow's run on a commit; its number."""
        number = next(self._numbers)
        run = {"id": number, "head_sha": sha, "head_branch": "main", "event": event, "conclusion": conclusion}
        status = "completed" if conclusion else "in_progress"
        self.runs.insert(0, {**run, "status": status, "path": f".github/workflows/{path}", "name": "CI"})
        return number

    def kept(self, run: int, name: str, archive: bytes = b"", *, expired: bool = False) -> int:
        """Add an artifact of a run; its number."""
        number = next(self._numbers)
        (sha,) = [each["head_sha"] for each in self.runs if each["id"] == run]
        source = {"id": run, "head_sha": sha, "head_branch": "main", "repository_id": 1}
        facts = {"id": number, "name": name, "expired": expired, "expires_at": "2026-05-03T01:02:03Z"}
        self.artifacts.insert(0, {**facts, "size_in_bytes": len(archive), "workflow_run": source})
        self.archives[number] = archive
        return number

    @property
    def bodies(self) -> list[Any]:
        """Of the comments."""
        return [comment.get("body") for comment in self.comments]

    @property
    def methods(self) -> list[str]:
        """Of the requests, in order."""
        return [request.method for request in self.requests]

    def files(self, branch: str) -> dict[str, str]:
        """The files of a branch: path to blob."""
        sha, found = self.objects[self.branches[branch]]["tree"], dict[str, str]()
        while sha:
            found = {entry["path"]: entry["sha"] for entry in self.objects[sha]["tree"]} | found
            sha = self.objects[sha].get("base_tree")
        return found

    def commit_to(self, branch: str, path: str) -> None:
        """Somebody else adds a file."""
        tip = self.branches[branch]
        entries = [{"path": path, "sha": "0" * 40}]
        tree = self._object({"tree": entries, "base_tree": self.objects[tip]["tree"]})
        self.branches[branch] = self._object({"tree": tree, "parents": [tip]})

    # --- What the server does ---

    def handle(self, request: Request) -> Response:
        """Status, document and headers of a request."""
        if request.path.startswith("/storage/"):
            return 200, self.archives[int(request.path.rpartition("/")[2])], {}
        if request.path == "/user":
            if self.login is None:
                return 403, {"message": "Resource not accessible by integration"}, {}
            return 200, {"login": self.login}, {}
        rest = re.sub("^/repos/[^/]+/[^/]+/", "", request.path)
        if rest.startswith("git/"):
            return (*self._git(request, rest.removeprefix("git/")), {})
        if rest in ("issues/7/comments", "issues"):
            return self._list_or_add(request, self.issues if rest == "issues" else self.comments)
        if match := re.fullmatch(r"issues/(comments/)?(\d+)", rest):
            items = self.comments if match[1] else self.issues
            (item,) = [item for item in items if item.get("id") == int(match[2])]
            item.update(request.document)
            return 200, item, {}
        if rest == "pulls":
            label = request.query["head"]
            return self._page(request, [pull for pull in self.pulls if pull["head"]["label"] == label])
        if match := re.fullmatch(r"pulls/(\d+)", rest):
            pull = next((pull for pull in self.pulls if pull["number"] == int(match[1])), None)
            return (200, pull, {}) if pull else NOT_FOUND
        if match := re.fullmatch(r"commits/(\w+)", rest):
            sha = next((sha for sha in (*self.commits, *self.branch_of) if sha.startswith(match[1])), None)
            return (200, self._commit(sha), {}) if sha else NOT_FOUND
        if match := re.fullmatch(r"compare/(\w+)\.\.\.(\w+)", rest):
            return self._compare(request, match[1], match[2])
        return self._actions(request, rest.removeprefix("actions/")) if rest.startswith("actions/") else NOT_FOUND

    def _actions(self, request: Request, rest: str) -> Response:
        if rest == "runs":
            asked = {{"branch": "head_branch"}.get(key, key): value for key, value in request.query.items()}
            asked["conclusion"] = asked.pop("status", "")
            wanted = {key: value for key, value in asked.items() if value and key not in ("page", "per_page")}
            return self._page(request, [run for run in self.runs if wanted.items() <= run.items()], "workflow_runs")
        if match := re.fullmatch(r"runs/(\d+)", rest):
            run = next((run for run in self.runs if run["id"] == int(match[1])), None)
            return (200, run, {}) if run else NOT_FOUND
        if match := re.fullmatch(r"runs/(\d+)/artifacts", rest):
            of_run = [each for each in self.artifacts if each["workflow_run"]["id"] == int(match[1])]
            return self._page(request, of_run, "artifacts")
        if rest == "artifacts":
            named = [each for each in self.artifacts if each["name"] == request.query["name"]]
            return self._page(request, named, "artifacts")
        if "authorization" not in request.headers:
            return 401, {"message": "Requires authentication"}, {}
        return 302, None, {"Location": f"{self.storage}/{rest.split('/')[1]}?sig=secret"}

    def _commit(self, sha: str) -> dict[str, Any]:
        place = self.commits.index(sha) if sha in self.commits else 0
        before = self.branch_of.get(sha) or (self.commits[place - 1] if place else None)
        return {"sha": sha, "parents": [{"sha": before, "url": ""}] if before else [], "commit": {"message": "one"}}

    def _compare(self, request: Request, first: str, last: str) -> Response:
        names = {"main": self.commits[-1]}
        first, last = (
            names.get(name) or next(sha for sha in (*self.commits, *self.branch_of) if sha.startswith(name))
            for name in (first, last)
        )
        base = self.branch_of.get(last, last)
        begin, end = self.commits.index(first), self.commits.index(base)
        ahead = [*self.commits[begin + 1 : end + 1], *([last] if last != base else [])]
        status = "identical" if first == last else "ahead" if begin <= end else "diverged"
        found = self._page(request, [self._commit(sha) for sha in ahead], "commits")
        facts = {"status": status, "behind_by": max(begin - end, 0), "base_commit": self._commit(first)}
        found[1].update(facts, merge_base_commit=self._commit(self.commits[min(begin, end)]))
        return found

    def _list_or_add(self, request: Request, items: list[dict[str, Any]]) -> Response:
        if request.method == "GET":
            return self._page(request, items)
        return 201, self._added(items, request.document["body"], self.login or BOT), {}

    def _page(self, request: Request, items: list[dict[str, Any]], key: str = "") -> Response:
        page, size = int(request.query.get("page", "1")), self.page_size
        part: Any = items[(page - 1) * size : page * size]
        part = {"total_count": len(items), key: part} if key else part
        if page * size >= len(items):
            return 200, part, {}
        query = urlencode({**request.query, "page": page + 1})
        return 200, part, {"Link": f'<{self.url}{request.path}?{query}>; rel="next"'}

    def _git(self, request: Request, rest: str) -> tuple[int, Any]:
        document = request.document
        if rest in ("blobs", "trees", "commits"):
            return 201, {"sha": self._object(document)}
        if rest.startswith("commits/"):
            return 200, {"tree": {"sha": self.objects[rest.removeprefix("commits/")]["tree"]}}
        if rest == "refs":
            self.branches[document["ref"].removeprefix("refs/heads/")] = document["sha"]
            return 201, {"ref": document["ref"]}
        branch = rest.partition("heads/")[2]
        tip = self.branches.get(branch)
        if request.method == "GET":
            return (200, {"object": {"sha": tip}}) if tip else (404, {"message": "Not Found"})
        if not document["force"] and tip not in self.objects[document["sha"]]["parents"]:
            return 422, {"message": "Update is not a fast forward"}
        self.branches[branch] = document["sha"]
        return 200, {"object": {"sha": document["sha"]}}

    def _added(self, items: list[dict[str, Any]], body: str, login: str) -> dict[str, Any]:
        self._next += 1
        url = f"https://github.example/o/r/7#{self._next}"
        item = {"id": self._next, "number": self._next, "body": body, "user": {"login": login}, "html_url": url}
        items.append(item)
        return item

    def _object(self, content: dict[str, Any]) -> str:
        sha = hashlib.sha1(json.dumps(content, sort_keys=True).encode()).hexdigest()  # noqa: S324 (as git has it)
        self.objects[sha] = content
        return sha


@contextlib.contextmanager
def running_github() -> Iterator[FakeGitHub]:
    """A GitHub without anything in it; what hangs there ends with it."""
    with FakeGitHub() as github:
        threading.Thread(target=github.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield github
        github.over.set()
        github.shutdown()


class Handler(BaseHTTPRequestHandler):
    """Answers requests, unless a fault is scripted."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer in two packets would wait for the client's delayed acknowledgement
    server: FakeGitHub

    def _any(self) -> None:
        github = self.server
        length = int(self.headers.get("Content-Length") or 0)
        parts = urlsplit(self.path)
        request = Request(
            method=self.command,
            path=unquote(parts.path),
            query={name: values[0] for name, values in parse_qs(parts.query).items()},
            headers={name.lower(): value for name, value in self.headers.items()},
            document=json.loads(self.rfile.read(length)) if length else None,
        )
        github.requests.append(request)
        matching = (fault for fault in github.faults if fault.method == request.method and fault.path in parts.path)
        fault = next(matching, None)
        if fault is not None:
            github.faults.remove(fault)
        if fault is None:
            status, document, headers = github.handle(request)
            self._answer(status, document if isinstance(document, bytes) else json.dumps(document), headers)
        elif fault.kind == "answer":
            self._answer(fault.status, fault.body, fault.headers)
        else:
            if fault.kind == "hang":
                github.over.wait(30)
            elif fault.kind == "lost":
                github.handle(request)
            # Zero seconds of lingering: the connection is reset, not closed in good order.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True

    do_GET = do_POST = do_PATCH = _any  # noqa: N815 (http.server's names)

    def _answer(self, status: int, body: str | bytes, headers: Mapping[str, str]) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 (http.server's name)
        """Nothing."""
