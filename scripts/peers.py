"""Fetches and builds, once, what others made and we test against: datacompy, Phoenix, clients of front ends, servers
and the conformance suite of MCP, and llama.cpp's server with a model.

    python scripts/peers.py

datacompy compares frames. It wants older versions of pandas and Polars than those that we test with, but works with
ours as far as it is used; so it is installed in a place of its own, without what it asks for.

Phoenix receives traces and shows them; it has a hundred packages of its own, in a place of their own too.

The clients (the AI SDK's, AG-UI's, OpenAI's for Node), the servers of MCP and its conformance suite are packages of
npm, installed where that is at hand; the suite wants a newer Node than many machines have, which npm installs too.

The server's source is the one that the `llama-cpp-python` package ships; it is compiled without a web page, TLS or
anything that is downloaded beside it, which takes ten minutes or so on two cores. All of it stays in .cache/peers: the
server, the model, and what an interrupted build has compiled so far. It needs cmake, a C++ compiler and a package
index; without the first two it says so and ends well, and the tests that need the server say that they were skipped.
"""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "peers"
LOG = CACHE / "build.log"
DATACOMPY = ("datacompy==1.1.0", "ordered-set==4.1.0", "jinja2==3.1.6", "markupsafe")
LIBRARY = CACHE / DATACOMPY[0]
PHOENIX_VERSION = "20.26.1"
PHOENIX = CACHE / f"arize-phoenix-{PHOENIX_VERSION}"
NODE = (
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "mcp-proxy@6.7.19",
    "@modelcontextprotocol/conformance@0.1.16",
    "node@22",
)
MCP = CACHE / "mcp-0.1.16-proxied"
VERSION = "0.3.36"
GGUF = "0.19.0"
SERVER = CACHE / f"llama-server-{VERSION}"
MODEL = CACHE / "model.gguf"
WRITER = Path(__file__).resolve().parent / "tiny_gguf.py"
INSIDE = f"llama_cpp_python-{VERSION}/vendor/llama.cpp/"
CLIENTS = CACHE / "clients"
WANTED = ROOT / "tests" / "peers" / "clients" / "package.json"
LONGEST = {"pip": 900, "npm": 900, "cmake": 300, "compile": 7200, "gguf": 120}
"""Seconds that each part may take."""

OPTIONS = (
    # Compiling for speed takes much longer than what it saves for so small a model.
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_NATIVE=OFF",
    "-DGGML_OPENMP=OFF",
    "-DGGML_CCACHE=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_SERVER=ON",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    # Its web page would be downloaded.
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
)


def main() -> None:
    """Makes what is missing."""
    CACHE.mkdir(parents=True, exist_ok=True)
    LOG.write_text("", encoding="utf-8")
    install(LIBRARY, "--no-deps", *DATACOMPY)
    install(PHOENIX, f"arize-phoenix=={PHOENIX_VERSION}")
    install_node()
    install_clients()
    if not SERVER.exists():
        if missing := lacking():
            say(f"no server to test against: {missing} is not installed, and llama.cpp is built with it")
            return
        build(fetched())
    if not MODEL.exists() or MODEL.stat().st_mtime < WRITER.stat().st_mtime:
        write_model()


def install_node() -> None:
    """Installs what npm has into a folder of its own, which is there when all of it is in it."""
    if MCP.exists():
        return
    if shutil.which("npm") is None:
        say("no servers of MCP to test against: npm is not installed")
        return
    unfinished = MCP.with_name(f"{MCP.name}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    (unfinished / "package.json").write_text("{}", encoding="utf-8")
    run(["npm", "install", "--prefix", str(unfinished), "--no-audit", "--no-fund", *NODE], "npm")
    unfinished.rename(MCP)


def lacking() -> str:
    """The first tool that the build needs and this machine does not have; empty if it has all."""
    if shutil.which("cmake") is None:
        return "cmake"
    compilers = [os.environ.get("CXX", "c++"), "g++", "clang++"]
    return "" if any(map(shutil.which, compilers)) else "a C++ compiler"


def fetched() -> Path:
    """The source of llama.cpp."""
    source = CACHE / f"llama.cpp-{VERSION}"
    if (source / "CMakeLists.txt").exists():
        return source
    say(f"fetching the source of llama-cpp-python {VERSION} …")
    wanted = f"llama-cpp-python=={VERSION}"
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", "llama-cpp-python"]
    run([*pip, "--dest", str(CACHE), wanted], "pip")
    archive = CACHE / f"llama_cpp_python-{VERSION}.tar.gz"
    unpacked = CACHE / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(archive) as packed:
        # Python 3.11.3 and before have no filters.
        safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        packed.extractall(unpacked, [one for one in packed if one.name.startswith(INSIDE)], **safely)  # noqa: S202
    # Renamed when it is whole, so that half a source is never taken for one.
    (unpacked / INSIDE).rename(source)
    shutil.rmtree(unpacked)
    archive.unlink()
    return source


def build(source: Path) -> None:
    """Compiles the server from `source`, and removes all but the server."""
    tree = CACHE / f"build-{VERSION}"
    say(f"building llama.cpp's server (once; ten minutes or so, its output is in {LOG}) …")
    run(["cmake", "-S", str(source), "-B", str(tree), *OPTIONS], "cmake")
    # Gently, and with no more than two at a time: a compiler of it takes a gigabyte.
    jobs = str(min(2, os.cpu_count() or 1))
    gently = ["nice", "-n", "19"] if shutil.which("nice") else []
    run([*gently, "cmake", "--build", str(tree), "--target", "llama-server", "--parallel", jobs], "compile")
    (tree / "bin" / "llama-server").rename(SERVER)
    shutil.rmtree(tree)
    shutil.rmtree(source)


def write_model() -> None:
    """Writes the model, with the `gguf` package in a place of its own."""
    say("writing a model of made-up weights …")
    packages = CACHE / f"gguf-{GGUF}"
    install(packages, f"gguf=={GGUF}")
    written = MODEL.with_suffix(".unfinished")
    run([sys.executable, str(WRITER), str(written)], "gguf", PYTHONPATH=str(packages))
    written.replace(MODEL)


def install(packages: Path, *arguments: str) -> None:
    """Installs packages into a folder of their own, which is there when all of them are in it."""
    if packages.exists():
        return
    unfinished = packages.with_name(f"{packages.name}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    run([sys.executable, "-m", "pip", "install", "--target", str(unfinished), *arguments], "pip")
    unfinished.rename(packages)


def install_clients() -> None:
    """Installs the clients of front ends, unless those that are wanted are there."""
    npm, there = shutil.which("npm"), CLIENTS / "package.json"
    if npm is None or shutil.which("node") is None:
        say("no clients of front ends to test against: Node and npm are not installed")
        return
    if there.exists() and there.read_bytes() == WANTED.read_bytes():
        return
    unfinished = CACHE / "clients-unfinished"
    for folder in (unfinished, CLIENTS):
        shutil.rmtree(folder, ignore_errors=True)
    unfinished.mkdir()
    shutil.copy(WANTED, unfinished)
    # Two versions of one package are wanted, each with its own peers.
    run([npm, "install", "--prefix", str(unfinished), "--legacy-peer-deps", "--no-audit", "--no-fund"], "npm")
    unfinished.rename(CLIENTS)


def run(command: list[str], part: str, **environment: str) -> None:
    """Runs a command with its output in the log, and shows the log's end if it fails or takes too long."""
    with LOG.open("a", encoding="utf-8") as log:
        # In a session of its own, so that no compiler outlives a build that is given up.
        process = subprocess.Popen(
            command,
            cwd=CACHE,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | environment,
            start_new_session=True,
        )
        try:
            code = process.wait(LONGEST[part])
            fault = f"failed with code {code}" if code else ""
        except subprocess.TimeoutExpired:
            fault = f"took longer than {LONGEST[part]} s; what it has done is kept for the next time"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if fault:
        end = "\n".join(LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-25:])
        sys.exit(f"{end}\n\n{' '.join(command[:6])} … {fault}; all of its output is in {LOG}")


def say(line: str) -> None:
    """Tells the person who waits what is being done."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
