"""The commands that only look: runs, show, tools, models, sources, compare, doctor, and the help."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from treadle.cli.app import COMMANDS

TOOLS = ("--tools", "script")


def test_help_lists_every_command_and_each_has_its_own(treadle: Any) -> None:
    listing = treadle("--help")
    assert listing.code == 0
    for name, (_, line) in COMMANDS.items():
        assert f"  {name} " in listing.out
        assert line in listing.out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_line_of_a_command_is_its_own(name: str) -> None:
    from importlib import import_module

    command = getattr(import_module(f"treadle.cli.commands.{COMMANDS[name][0]}"), name)
    assert (command.name, command.short_help) == (name, COMMANDS[name][1])
    assert command.help


def test_the_help_loads_neither_the_library_nor_rich(treadle: Any) -> None:
    import subprocess
    import sys

    program = (
        "import sys\nfrom treadle.cli.app import run\nrun(['--help'])\n"
        "heavy = ('asyncio', 'rich', 'pydantic', 'msgspec', 'duckdb', 'httpx2')\n"
        "found = [n for n in sys.modules if n.partition('.')[0] in heavy or n.startswith('treadle.')]\n"
        "print(sorted(found), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "['treadle.cli', 'treadle.cli.app', 'treadle.cli.exits']"


def test_version(treadle: Any) -> None:
    from treadle import __version__

    assert treadle("--version").out == f"treadle {__version__}\n"


def test_completion_knows_the_commands_and_their_options(treadle: Any) -> None:
    commands = treadle(_TREADLE_COMPLETE="bash_complete", COMP_WORDS="treadle co", COMP_CWORD="1")
    assert commands.out == "plain,costs\nplain,compare\nplain,config\n"
    options = treadle(_TREADLE_COMPLETE="bash_complete", COMP_WORDS="treadle ask --max-s", COMP_CWORD="2")
    assert options.out == "plain,--max-steps\n"


def test_runs_lists_the_newest_first(treadle: Any) -> None:
    assert "no runs yet" in treadle("runs").err
    assert not treadle.journal.exists()
    treadle("ask", "first", "--model", "script:echo")
    treadle("ask", "second", "--model", "script:endless", *TOOLS, "--max-steps", "2")
    header, newest, oldest = treadle("runs").out.splitlines()
    assert header.split() == ["run", "started", "status", "steps", "calls", "model", "question"]
    assert newest.split()[3:] == ["max_steps", "2", "1", "scripted", "second"]
    assert oldest.split()[3:] == ["answered", "1", "0", "scripted", "first"]
    assert [run["question"] for run in json.loads(treadle("runs", "--json", "--limit", "1").out)] == ["second"]


def test_show_tells_the_story_and_why(treadle: Any, run_id: Any) -> None:
    treadle("ask", "look around", "--model", "script:endless", *TOOLS, "--max-steps", "2")
    shown = treadle("show", run_id()[:-3])
    assert shown.code == 0
    assert "question: look around" in shown.out
    assert "so far: seen 0" in shown.out
    assert 'look(what="0")' in shown.out
    assert "before step 1" not in shown.out
    why = treadle("show", "last", "--why").out
    first = next(line for line in why.splitlines() if line.startswith("before step 1"))
    assert first.split() == ["before", "step", "1", "land", "steps", "1", "2"]
    assert "stop reason: max_steps" in why
    events = json.loads(treadle("show", "last", "--json").out)
    assert [events[0]["event"], events[-1]["event"]] == ["run_started", "run_finished"]


def test_a_beginning_that_two_runs_have_is_refused(treadle: Any) -> None:
    treadle("ask", "first", "--model", "script:echo")
    treadle("ask", "second", "--model", "script:echo")
    done = treadle("show", "2")
    assert done.code == 2
    assert "2 runs begin with '2'" in done.err


def test_tools(treadle: Any) -> None:
    listing = treadle("tools").out
    for name in ("calculator", "current_time", "check_stock", "get_price", "calculate_total", "compare_sources"):
        assert name in listing
    [_, *rows] = treadle("tools", *TOOLS).out.splitlines()
    assert {row.split()[0] for row in rows} == {"look", "pay", "slow", "ask_boss"}
    assert next(row for row in rows if row.startswith("pay")).split()[:3] == ["pay", "write", "asks"]
    [spec] = json.loads(treadle("tools", "calculator", "--schema").out)
    assert spec["name"] == "calculator"
    assert spec["input_schema"]["properties"]["expression"]["type"] == "string"
    assert json.loads(treadle("tools", "--skill", "inventory", "--json").out)[0]["skill"] == "inventory"


def test_models_never_shows_a_key(treadle: Any) -> None:
    done = treadle("models", ANTHROPIC_API_KEY="sk-secret", TREADLE_DEBUG="1")
    assert "sk-secret" not in done.out + done.err
    assert [row.split()[-1] for row in done.out.splitlines() if row.startswith("anthropic")] == ["yes"]
    found = json.loads(treadle("models", "--json", GROQ_API_KEY="x").out)
    assert found["chosen"].startswith("groq:")
    assert found["why"] == "GROQ_API_KEY is set"
    assert "sk-secret" not in treadle("doctor", ANTHROPIC_API_KEY="sk-secret").out


class Ollama(BaseHTTPRequestHandler):
    models: tuple[str, ...] = ()

    def do_GET(self) -> None:
        body = json.dumps({"models": [{"name": name} for name in type(self).models]}).encode()
        self.send_response(200 if self.path == "/api/tags" else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def ollama() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Ollama) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("models", "chosen", "why"),
    [
        (("nomic-embed-text:latest", "qwen3:8b", "llama3:8b"), "ollama:qwen3:8b", "Ollama answers"),
        ((), "offline", "has no model"),
    ],
)
def test_a_local_server_is_used_if_it_has_a_model(
    treadle: Any, ollama: HTTPServer, monkeypatch: pytest.MonkeyPatch, models: tuple[str, ...], chosen: str, why: str
) -> None:
    monkeypatch.setattr(Ollama, "models", models)
    host = {"OLLAMA_HOST": f"127.0.0.1:{ollama.server_port}", "TREADLE_FORBID_MODELS": ""}
    found = json.loads(treadle("models", "--json", **host).out)
    assert (found["chosen"], why in found["why"]) == (chosen, True)
    named = json.loads(treadle("models", "--json", **host, TREADLE_MODEL="script:echo").out)
    assert named["chosen"] == "script:echo"
    with_key = json.loads(treadle("models", "--json", **host, OPENAI_API_KEY="x").out)
    assert with_key["chosen"].startswith("openai:")


def test_sources(treadle: Any) -> None:
    listing = treadle("sources").out
    for name in ("fi_reporting", "bpc_reporting", "consolidation_mart"):
        assert name in listing
    described = treadle("sources", "fi_reporting").out
    assert "company" in described
    assert "amount" in described
    assert json.loads(treadle("sources", "fi_reporting", "--json").out)["name"] == "fi_reporting"


def own_sources(treadle: Any) -> str:
    write = treadle.folder.joinpath
    write("a.csv").write_text("region,sales\nnorth,10.10\nsouth,5.00\n", encoding="utf-8")
    write("b.csv").write_text("region,sales\nnorth,10.10\nsouth,4.00\n", encoding="utf-8")
    source = "{{kind: csv, path: {0}.csv, dimensions: {{region: {{}}}}, measures: {{sales: {{}}}}}}"
    text = f"sources:\n  shop_a: {source.format('a')}\n  shop_b: {source.format('b')}\n"
    write("sources.yaml").write_text(text, encoding="utf-8")
    return "sources.yaml"


def test_own_sources(treadle: Any) -> None:
    path = own_sources(treadle)
    assert "shop_a" in treadle("sources", "--sources", path).out
    assert "shop_a" in treadle("sources", TREADLE_SOURCES=path).out
    done = treadle("compare", "shop_a", "shop_b", TREADLE_SOURCES=path)
    assert done.code == 0
    assert "15.10" in done.out
    assert "14.10" in done.out
    first, *_ = json.loads(treadle("tools", *TOOLS, "--sources", path, "--json").out)
    assert first["skill"] == "analyst"


def test_own_sources_that_are_not_named_are_told_of_and_not_read(treadle: Any) -> None:
    path = own_sources(treadle)
    missed = treadle("compare", "shop_a", "shop_b")
    assert (missed.code, f"--sources {path}" in missed.err) == (2, True)
    assert f"--sources {path}" not in treadle("sources", "--sources", path).err


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        (["--where", "region=south"], [["south", "5.00", "4.00", "1.00"], ["total", "5.00", "4.00", "1.00"]]),
        (["--where", "region!=north"], [["south", "5.00", "4.00", "1.00"], ["total", "5.00", "4.00", "1.00"]]),
        (["--where", "region=north,south"], [["south", "5.00", "4.00", "1.00"], ["total", "15.10", "14.10", "1.00"]]),
        (["--by", ""], [["15.10", "14.10", "1.00"]]),
        (["--top", "0"], [["total", "15.10", "14.10", "1.00"]]),
        (["--tolerance", "2"], [["total", "15.10", "14.10", "1.00"]]),
    ],
    ids=lambda value: " ".join(value) if value and isinstance(value[0], str) else None,
)
def test_compare(treadle: Any, options: list[str], rows: list[list[str]]) -> None:
    sources = ["--sources", own_sources(treadle), "--measure", "sales"]
    by = [] if "--by" in options else ["--by", "region"]
    done = treadle("compare", "shop_a", "shop_b", *by, *options, *sources)
    assert done.code == 0, done.err
    found = done.out.split("status\n")[1].split("\n\n")[0].splitlines()
    assert [row.split()[: len(rows[0])] for row in found] == rows


def test_compare_as_json_keeps_every_digit(treadle: Any) -> None:
    done = treadle(
        *("compare", "fi_reporting", "consolidation_mart", "--where", "company=1001"),
        *("--where", "period=202401", "--by", "company,period", "--json"),
    )
    summary = json.loads(done.out)["summary"]
    assert (summary["total_source_a"], summary["total_source_b"]) == ("1500000.00", "1492000.00")


def test_doctor(treadle: Any) -> None:
    done = treadle("doctor")
    assert done.code == 0, done.out
    assert "is made at the first run" in done.out
    assert not treadle.journal.exists()
    treadle("ask", "?", "--model", "script:echo")
    rows = {row["what"]: row for row in json.loads(treadle("doctor", "--json").out)}
    assert rows["journal"]["state"] == "ok"
    assert "newest run" in rows["journal"]["found"]
    treadle.journal.write_bytes(b"no journal " * 100)
    bad = treadle("doctor")
    assert bad.code == 2
    assert "bad" in bad.out


@pytest.mark.skipif(sys.platform == "win32", reason="a file has no mode there")
def test_the_doctor_says_of_what_is_no_journal_only_that(treadle: Any) -> None:
    """Of a text it said that it holds all that was said in its runs."""
    text = treadle.folder / "q.txt"
    text.write_text("What is this?\n" * 100)
    text.chmod(0o644)
    told = [row["found"] for row in json.loads(treadle("doctor", "--journal", str(text), "--json").out)
            if row["what"] == "journal"]  # fmt: skip
    assert len(told) == 1
    assert "is no SQLite database" in told[0]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder in which nobody can make a file")
def test_the_doctor_says_that_a_journal_cannot_be_made(treadle: Any) -> None:
    told = treadle("doctor", "--journal", "/proc/treadle/runs.db")
    assert told.code == 2
    assert "cannot be made: /proc cannot be written" in told.out


@pytest.mark.parametrize(
    ("what", "setting", "told"),
    [
        ("model", {"TREADLE_MODEL": "nosuch:model"}, "nosuch"),
        ("model", {"TREADLE_MODEL": "anthropic:claude-sonnet-4-5"}, "ANTHROPIC_API_KEY"),
        ("settings", {"TREADLE_MODEL": "text:"}, "text:FORMAT:PROVIDER:MODEL"),
        ("sources", {"TREADLE_SOURCES": "none.yaml"}, "none.yaml cannot be read"),
        ("journal", {"TREADLE_JOURNAL": "x" * 300}, "cannot be looked at"),
        ("journal", {"TREADLE_JOURNAL": "dangling.db"}, "is a link to what is no file"),
    ],
    ids=str,
)
def test_the_doctor_says_what_of_the_settings_cannot_be_used(
    treadle: Any, what: str, setting: dict[str, str], told: str
) -> None:
    """A model, sources and a link that no command could use were "ok", and a name that is too long ended the doctor."""
    (treadle.folder / "dangling.db").symlink_to("gone/runs.db")
    treadle.environment |= setting
    done = treadle("doctor", "--json")
    rows = {row["what"]: row for row in json.loads(done.out)}
    assert (done.code, rows[what]["state"]) == (2, "bad"), done.out
    assert told in rows[what]["found"]
    assert rows["output"]["state"] == "ok"


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_the_doctor_goes_on_where_settings_cannot_be_looked_at(treadle: Any) -> None:
    """It ended there, without a word about anything else."""
    (treadle.folder / "loop").symlink_to("loop")
    treadle.environment |= {"XDG_CONFIG_HOME": str(treadle.folder / "loop")}
    rows = {row["what"]: row for row in json.loads(treadle("doctor", "--json").out)}
    assert (rows["settings"]["state"], "cannot be looked at" in rows["settings"]["found"]) == ("bad", True)
    assert rows["output"]["state"] == "ok"


def test_a_model_of_ones_own_is_not_loaded_by_the_doctor(treadle: Any) -> None:
    (treadle.folder / "loud.py").write_text("raise SystemExit(7)")
    treadle.environment |= {"TREADLE_MODEL": "loud.py:model"}
    done = treadle("doctor")
    assert (done.code, "loud.py:model, if none is named" in done.out) == (0, True), done.out


@pytest.mark.parametrize(
    ("format", "call"), [("json", '{"name": "look"'), ("react", "Action: look"), ("tags", "<tool_call>")]
)
def test_tools_shows_what_a_model_without_tool_calling_is_told(treadle: Any, format: str, call: str) -> None:
    told = treadle("tools", *TOOLS, "--prompt", format, "look")
    assert told.code == 0
    assert call in told.out
    assert "look: Looks at something.\n- what (string, required)" in told.out
    assert "pay" not in told.out


def test_a_prompt_of_an_unknown_format_says_which_there_are(treadle: Any) -> None:
    told = treadle("tools", *TOOLS, "--prompt", "xml")
    assert told.code == 2
    assert "there is no format 'xml' (there are: json, react, tags)" in told.err


def test_a_model_is_given_its_tools_in_text_by_its_name(treadle: Any) -> None:
    told = treadle("ask", *TOOLS, "--model", "text:react:script.py:answers", "?")
    assert (told.code, "42" in told.out) == (0, True), told.err
    wrong = treadle("ask", *TOOLS, "--model", "text:", "?")
    assert wrong.code == 2
    assert "text:FORMAT:PROVIDER:MODEL" in wrong.err
