"""Behind a real nginx, with the very block and command line of the docs: streams, sizes, hosts, origins, addresses.

Without nginx these tests are skipped (`apt-get install nginx-light`, or say where it is in NGINX).
"""

import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from needs import missing

DOCS = Path(__file__).resolve().parents[2] / "docs" / "serving.md"
TOKEN = "a token that nobody guesses"
KNOWN = {"authorization": f"Bearer {TOKEN}"}

AGENTS = """
from treadle import Agent, ask_before, tool
from treadle.testing import ScriptedModel

@tool(effect="write")
def pay(to: str) -> str:
    '''Pays somebody.'''
    return f"paid {to}"

def turn(request):
    return "It is paid." if request.messages[-1].role == "tool" else ("I shall pay.", [("pay", {"to": "Ann"})])

clerk = Agent(ScriptedModel(turn, chunk=4), name="clerk", tools=[pay], approvals=[ask_before("pay")])
"""

SITE = """
daemon off; worker_processes 1; pid nginx.pid; error_log error.log; %(user)s
events {}
http {
    access_log off;
    client_body_temp_path body; proxy_temp_path proxied; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
    server {
        listen 127.0.0.1:%(plain)d;
        listen 127.0.0.1:%(safe)d ssl;
        ssl_certificate site.pem; ssl_certificate_key site.key;
        location / { return 200 "the rest of the site"; }
        %(block)s
    }
}
"""


def free():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def until(look, seconds=30):
    """What `look` finds, once it finds something."""
    for _ in range(seconds * 50):
        try:
            if found := look():
                return found
        except httpx2.TransportError:
            pass
        time.sleep(0.02)
    raise TimeoutError


class Site:
    """nginx with the docs' block, and `treadle serve` with the docs' options behind it."""

    def __init__(self, folder: Path, nginx: str) -> None:
        text = DOCS.read_text(encoding="utf-8").partition("## Behind nginx")[2]
        block = re.search(r"```nginx\n(.*?)```", text, re.DOTALL)[1]
        command = re.search(r"```bash\n(.*?)```", text, re.DOTALL)[1]
        self.options = shlex.split(command.partition("shop.agents:clerk")[2])
        self.folder, self.nginx, self.port, self.plain, self.safe = folder, nginx, free(), free(), free()
        assert "127.0.0.1:8700" in block
        said = {
            "user": "user root;" if hasattr(os, "geteuid") and os.geteuid() == 0 else "",
            "plain": self.plain, "safe": self.safe, "block": block.replace(":8700", f":{self.port}"),
        }  # fmt: skip
        (folder / "nginx.conf").write_text(SITE % said)
        (folder / "agents.py").write_text(AGENTS)
        keys = [
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "site.key",
            "-out",
            "site.pem",
            "-subj",
            "/CN=agents.example",
        ]
        subprocess.run(["openssl", "req", "-x509", *keys], cwd=folder, check=True, capture_output=True)
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def begin(self, *names: str) -> None:
        commands = {
            "nginx": [self.nginx, "-p", str(self.folder), "-c", "nginx.conf"],
            "treadle": [
                sys.executable, "-m", "treadle", "serve", "--agent", "agents.py:clerk", *self.options,
                "--port", str(self.port), "--journal", "runs.db",
            ],
        }  # fmt: skip
        for name in names or commands:
            with (self.folder / f"{name}.log").open("ab") as log:
                self.started[name] = subprocess.Popen(
                    commands[name], cwd=self.folder, env={**os.environ, "TREADLE_TOKEN": TOKEN}, stdout=log, stderr=log
                )
        with self.client() as client:
            until(lambda: client.get("/health").status_code == 200)

    def end(self, *names: str) -> None:
        for name in names or tuple(self.started):
            process = self.started.pop(name)
            process.terminate()
            process.wait(30)

    def client(self, safe=False, **more):
        """A client that comes through nginx."""
        scheme, port = ("https", self.safe) if safe else ("http", self.plain)
        checked = ssl.create_default_context(cafile=str(self.folder / "site.pem"))
        checked.check_hostname = False
        headers = {"host": f"agents.example:{port}", **more.pop("headers", {})}
        address = f"{scheme}://127.0.0.1:{port}/agents"
        return httpx2.Client(base_url=address, timeout=30, verify=checked, headers=headers, **more)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    nginx = os.environ.get("NGINX") or shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if nginx is None or shutil.which("openssl") is None:
        missing("there is no nginx here (apt-get install nginx-light), or no openssl", "TREADLE_REQUIRE_NGINX")
    found = Site(tmp_path_factory.mktemp("site"), nginx)
    try:
        found.begin()
        yield found
    finally:
        found.end()


@pytest.fixture
def client(site):
    with site.client(headers=KNOWN) as client:
        yield client


def begun(client, **more):
    return client.post("/api/runs", json={"agent": "clerk", "input": "Pay Ann.", **more}).json()["id"]


def decided(client, run):
    (call,) = client.get(f"/api/runs/{run}").json()["pending"]
    decision = {"call": call["call"], "fingerprint": call["fingerprint"], "verdict": "approve"}
    assert client.post(f"/api/runs/{run}/decisions", json={"decisions": [decision]}).status_code == 200


def events(lines):
    """The numbered events, as (number, kind), as they come."""
    number = None
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            number = int(value)
        elif name == "event" and number is not None:
            yield number, value
            number = None


def test_the_page_and_all_that_it_asks_for_are_found(client):
    page = client.get("/")
    assert (page.status_code, '<base href="/agents/" />' in page.text) == (200, True)
    assets = re.findall(r"\./(assets/[^\"]+)", page.text)
    assert len(assets) == 3
    for one in (*assets, "runs/x", "health", "openapi.json", "api/agents", "v1/models"):
        assert client.get(f"/{one}").status_code == 200, one


def test_a_stream_comes_as_it_is_written_and_a_decision_is_seen_on_it(client):
    run = begun(client)
    with client.stream("GET", f"/api/runs/{run}/stream") as answer:
        told = events(answer.iter_lines())
        # The stream is open, and what was written so far is here: nothing on the way keeps it back.
        seen = [next(told)]
        while seen[-1][1] != "run_paused":
            seen.append(next(told))
        decided(client, run)
        seen += list(told)
    stored = client.get(f"/api/runs/{run}/events").json()["events"]
    assert seen == [(one["number"], one["type"]) for one in stored]
    assert seen[-1][1] == "run_finished"


@pytest.mark.parametrize("lost", ["nginx", "treadle"])
def test_a_client_that_reconnects_gets_each_event_once_whichever_went_away(site, client, lost):
    run = begun(client)
    seen = []
    with suppress(httpx2.TransportError), client.stream("GET", f"/api/runs/{run}/stream") as answer:
        for one in events(answer.iter_lines()):
            seen.append(one)
            if one[1] == "run_paused":
                site.end(lost)
    assert seen[-1][1] == "run_paused"
    if lost == "treadle":
        assert client.get("/health").status_code == 502
    site.begin(lost)
    with site.client(headers={**KNOWN, "last-event-id": str(seen[-1][0])}) as again:
        decided(again, run)
        with again.stream("GET", f"/api/runs/{run}/stream") as answer:
            seen += list(events(answer.iter_lines()))
    with site.client(headers=KNOWN) as again:
        stored = again.get(f"/api/runs/{run}/events").json()["events"]
    assert seen == [(one["number"], one["type"]) for one in stored]


def test_a_body_may_be_as_large_as_without_nginx_and_no_larger(client):
    question = "x" * 3_900_000
    run = client.post("/api/runs", json={"agent": "clerk", "input": question})
    assert (run.status_code, len(run.json()["question"])) == (201, 1000)
    for _ in range(10):
        # Refused while nginx still sends it on; which is done first is chance.
        larger = client.post("/api/runs", json={"agent": "clerk", "input": f"{question}{'x' * 200_000}"})
        assert (larger.status_code, larger.json()["error"]["kind"]) == (413, "too_large")
        unknown = {"authorization": "Bearer another token"}
        nobody = client.post("/api/runs", json={"agent": "clerk", "input": question}, headers=unknown)
        assert (nobody.status_code, nobody.json()["error"]["kind"]) == (401, "unauthorised")


def test_hosts_and_origins_are_held_against_what_the_browser_said(site, client):
    for host in ("a.stranger", f"a.stranger:{site.plain}", "agents.example.a.stranger"):
        told = client.get("/api/runs", headers={"host": host})
        assert (told.status_code, told.json()["error"]["kind"]) == (421, "misdirected"), host
    body = {"agent": "clerk", "input": "Pay Ann."}
    own = {"origin": f"http://agents.example:{site.plain}", "sec-fetch-site": "same-origin"}
    assert client.post("/api/runs", json=body, headers=own).status_code == 201
    for origin in ("http://a.stranger", "http://agents.example:1", "null"):
        told = client.post("/api/runs", json=body, headers={"origin": origin})
        assert (told.status_code, told.json()["error"]["kind"]) == (403, "forbidden"), origin


def test_the_cookie_is_for_the_place_and_for_tls_where_there_is_tls(site):
    for safe in (False, True):
        with site.client(safe) as browser:
            cookie = browser.post("/api/session", json={"token": TOKEN}).headers["set-cookie"]
            assert ("Path=/agents" in cookie, "HttpOnly" in cookie, "; Secure" in cookie) == (True, True, safe)
            answer = browser.get("/api/runs", headers={"cookie": cookie.partition(";")[0]})
            assert answer.status_code == 200


@pytest.mark.skipif(sys.platform != "linux", reason="any address of 127.0.0.0/8 is this machine's on Linux")
def test_who_tries_tokens_shuts_out_nobody_else(site):
    there, here = (httpx2.HTTPTransport(local_address=address) for address in ("127.0.0.2", "127.0.0.3"))
    with site.client(transport=there) as guesses, site.client(transport=here) as known:
        # What a client says of its address does not count.
        tried = [
            guesses.post("/api/session", json={"token": "wrong"}, headers={"x-forwarded-for": f"10.0.0.{n}"})
            for n in range(25)
        ]
        assert [one.status_code for one in tried] == [401] * 20 + [429] * 5
        assert json.loads(tried[-1].text)["error"]["kind"] == "too_many"
        assert known.post("/api/session", json={"token": TOKEN}).status_code == 204
