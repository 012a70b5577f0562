"""Mounted beside Django's own views in a real project, by the lines of the docs: the page, streams, Django's users."""

import os
import re
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import httpx2
import pytest

if find_spec("django") is None or os.name != "posix":
    pytest.skip("Django is not installed, or sockets are not handed to programs here", allow_module_level=True)

DOCS = Path(__file__).resolve().parents[2] / "docs" / "serving.md"

SETTINGS = """
SECRET_KEY = "of this test"
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "urls"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.db"}}
USE_TZ = True
"""

URLS = """
from django.contrib.auth import authenticate, login, logout
from django.http import HttpResponse
from django.urls import path

def hello(request):
    return HttpResponse(f"Hello, {request.user.get_username() or 'whoever you are'}.")

def log_in(request, name):
    login(request, authenticate(request, username=name, password=f"{name}'s word"))
    return HttpResponse("in")

def log_out(request):
    logout(request)
    return HttpResponse("out")

urlpatterns = [path("", hello), path("in/<name>", log_in), path("out", log_out)]
"""

USERS = """
import django
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
call_command("migrate", verbosity=0)
for name in ("ada", "bob", "boss"):
    User.objects.create_user(name, password=f"{name}'s word", is_staff=name == "boss")
"""


def blocks(heading):
    """The blocks of Python that stand under a heading of the docs."""
    text = re.split(r"\n#+ ", DOCS.read_text(encoding="utf-8").partition(f"# {heading}\n")[2])[0]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "settings.py").write_text(SETTINGS)
    (folder / "urls.py").write_text(URLS)
    (django,) = blocks("Django")
    (folder / "asgi.py").write_text(f"{blocks('As a part of your application')[0]}\n{django}")
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "settings"}
    subprocess.run([sys.executable, "-c", USERS], cwd=folder, env=env, check=True)
    with socket.create_server(("127.0.0.1", 0)) as listening, (folder / "log").open("wb") as log:
        port = listening.getsockname()[1]
        command = [sys.executable, "-m", "uvicorn", "asgi:application", "--fd", str(listening.fileno())]
        process = subprocess.Popen(
            [*command, "--timeout-graceful-shutdown", "2"],
            cwd=folder, env=env, stdout=log, stderr=log, pass_fds=[listening.fileno()],
        )  # fmt: skip
        try:
            found = f"http://127.0.0.1:{port}"
            wait(process, folder / "log", found)
            yield found
        finally:
            process.terminate()
            process.wait(30)


def wait(process, log, address):
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        if "startup complete" in log.read_text() and httpx2.get(f"{address}/").status_code == 200:
            return
        time.sleep(0.05)
    raise TimeoutError(log.read_text())


@pytest.fixture
def known(address):
    """Browsers that are logged in, by the users' names."""
    made = {name: httpx2.Client(base_url=address, timeout=30) for name in ("ada", "bob", "boss")}
    for name, one in made.items():
        assert one.get(f"/in/{name}").text == "in"
    yield made
    for one in made.values():
        one.close()


def waits(browser):
    """A run of the browser's user, that waits."""
    run = browser.post("/agents/api/runs", json={"agent": "clerk", "input": "Ada wants her money back."}).json()["id"]
    told = browser.get(f"/agents/api/runs/{run}/stream", params={"until": "pause"}).text
    assert told.startswith("id: 1\nevent: run_started\n")
    return run, browser.get(f"/agents/api/runs/{run}").json()["pending"][0]


def decision(call):
    return {"decisions": [{"call": call["call"], "fingerprint": call["fingerprint"], "verdict": "approve"}]}


def test_djangos_views_and_the_page_are_beside_each_other(address, known):
    assert httpx2.get(f"{address}/").text == "Hello, whoever you are."
    assert known["ada"].get("/").text == "Hello, ada."
    page = httpx2.get(f"{address}/agents/")
    assert (page.status_code, '<base href="/agents/" />' in page.text) == (200, True)
    for one in re.findall(r"\./(assets/[^\"]+)", page.text):
        assert httpx2.get(f"{address}/agents/{one}").status_code == 200
    for one in ("health", "openapi.json", "runs/x"):
        assert known["ada"].get(f"/agents/{one}").status_code == 200


def test_who_calls_is_djangos_user_until_they_log_out(address, known):
    assert httpx2.get(f"{address}/agents/api/runs").status_code == 401
    assert httpx2.get(f"{address}/agents/api/runs", cookies={"sessionid": "guessed"}).status_code == 401
    told = known["ada"].get("/agents/api/session").json()["user"]
    assert (told["name"], told["sees"]) == ("ada", "own")
    assert known["boss"].get("/agents/api/session").json()["user"]["sees"] == "all"
    assert known["ada"].get("/out").text == "out"
    assert known["ada"].get("/agents/api/runs").status_code == 401


def test_a_run_is_its_users_and_its_events_come_as_they_happen(known):
    run, call = waits(known["ada"])
    assert known["bob"].get(f"/agents/api/runs/{run}").status_code == 404
    assert known["bob"].post(f"/agents/api/runs/{run}/decisions", json=decision(call)).status_code == 404
    assert known["boss"].get(f"/agents/api/runs/{run}").json()["user"] == "ada"
    kinds = []
    with known["ada"].stream("GET", f"/agents/api/runs/{run}/stream") as answer:
        for line in answer.iter_lines():
            if line.startswith("event: "):
                kinds.append(line.removeprefix("event: "))
                if kinds[-1] == "run_paused":
                    # It is here though the stream is open: nothing of Django's keeps it back.
                    decided = known["ada"].post(f"/agents/api/runs/{run}/decisions", json=decision(call))
                    assert decided.status_code == 200
    assert kinds[-2:] == ["run_finished", "end"]
    assert known["ada"].get(f"/agents/api/runs/{run}").json()["text"] == "Ada has her money back."


def test_a_page_of_another_site_does_nothing_with_djangos_cookie(known):
    body = {"agent": "clerk", "input": "Ada wants her money back."}
    told = known["ada"].post("/agents/api/runs", json=body, headers={"origin": "https://a.stranger"})
    assert (told.status_code, told.json()["error"]["kind"]) == (403, "forbidden")
