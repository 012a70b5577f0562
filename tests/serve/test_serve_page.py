"""The page as it is served: whole in itself, under a policy that lets it do nothing else, wherever it is mounted."""

import gzip
import re

import pytest
from served import serving, talker
from starlette.applications import Starlette
from starlette.routing import Mount

from treadle import MemoryJournal
from treadle.serve import app
from treadle.serve.page_files import PLACES, _files

pytestmark = pytest.mark.anyio

TOKEN = "a token that nobody guesses"


def served(**more):
    return app([talker()], journal=MemoryJournal(), **more)


async def test_every_address_of_the_page_is_the_page_and_no_other_is():
    async with serving(served(token=TOKEN)) as client:
        for path in (
            "/",
            *(f"/{place}" for place in PLACES),
            "/runs/a/steps/3",
            "/runs/..%2f..%2fetc/passwd",
            "/chat/c/x",
        ):
            answer = await client.get(path)
            assert answer.status_code == 200, path
            assert answer.headers["content-type"].startswith("text/html")
            assert answer.headers["cache-control"] == "no-cache"
            assert "<base href=" in answer.text
        for path in (
            "/nothing",
            "/assets/",
            "/assets/../app.py",
            "/assets/%2e%2e/index.html",
            "/index.html",
            "/page_files.py",
        ):
            assert (await client.get(path)).status_code == 404, path
        # What is of runs stays behind the token.
        assert (await client.get("/api/runs")).status_code == 401


async def test_the_policy_lets_the_page_do_what_it_does_and_no_more():
    async with serving(served()) as client:
        policy = (await client.get("/")).headers["content-security-policy"]
        said = dict(part.strip().split(" ", 1) for part in policy.split(";"))
        assert said["default-src"] == "'none'"
        assert {name: said[name] for name in ("script-src", "style-src", "connect-src")} == {
            "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'",
        }  # fmt: skip
        assert said["img-src"] == "'self' data:"
        assert said["frame-ancestors"] == "'none'"
        assert "unsafe" not in policy
        assert (await client.get("/")).headers["x-content-type-options"] == "nosniff"


async def test_files_are_kept_for_good_and_packed_for_whoever_takes_it():
    async with serving(served()) as client:
        page = (await client.get("/")).text
        names = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', page)
        assert len(names) == 3
        for name in names:
            packed = await client.get(f"/{name}")
            plain = await client.get(f"/{name}", headers={"accept-encoding": "identity"})
            assert packed.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert packed.headers["content-encoding"] == "gzip"
            assert "content-encoding" not in plain.headers
            assert packed.content == plain.content
            assert packed.headers["vary"] == "accept-encoding"


async def test_a_page_that_is_mounted_knows_where_it_is():
    inner = served()
    outer = Starlette(routes=[Mount("/a & b/agents", inner)], lifespan=inner.lifespan)
    async with serving(outer) as client:
        answer = await client.get("/a & b/agents/runs/x")
        assert '<base href="/a &amp; b/agents/" />' in answer.text
        name = re.search(r'src="\./(assets/[^"]+\.js)"', answer.text)
        assert name is not None
        assert (await client.get(f"/a & b/agents/{name[1]}")).status_code == 200


def test_the_page_is_small_and_whole_in_itself():
    files = _files()
    assert sum(len(gzip.compress(file.body)) for file in files.values()) < 150_000
    index = files["index.html"].body.decode()
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|https?://", index)
    style = next(file.body.decode() for name, file in files.items() if name.endswith(".css"))
    assert not re.search(r"https?://|@import|url\(", style)
    script = next(file.body.decode() for name, file in files.items() if name.endswith(".js"))
    # Names of XML, and the address that an error of the library for Markdown names, are all.
    assert {"www.w3.org", "github.com"} >= set(re.findall(r"https?://([\w.-]+)", script))
    assert "eval(" not in script


async def test_a_browser_is_known_again_wherever_the_page_is_mounted():
    inner = served(token=TOKEN)
    outer = Starlette(routes=[Mount("/my agents", inner)], lifespan=inner.lifespan)
    async with serving(outer) as client:
        answer = await client.post("/my%20agents/api/session", json={"token": TOKEN})
        # A browser holds it against the path as it stands in what it asks for.
        assert "Path=/my%20agents;" in answer.headers["set-cookie"]
