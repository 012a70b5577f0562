"""`treadle config`: what is set, where it comes from, and which goes first."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from treadle.cli import app, settings


class Done:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


class Here:
    """The command in this process, in a folder of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys, self._patch = folder, capsys, monkeypatch
        for name in [one for one in os.environ if one.startswith(("TREADLE_", "XDG_"))]:
            monkeypatch.delenv(name)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("TREADLE_FORBID_MODELS", "1")

    def __call__(self, *arguments: str, **environment: str) -> Done:
        settings._told.clear()
        with self._patch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            code = app.run(arguments)
        said = self._capsys.readouterr()
        return Done(code, said.out, said.err)


@pytest.fixture
def treadle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(tmp_path, monkeypatch, capsys)


def user_file(treadle: Any) -> Path:
    return Path(treadle("config", "path").out.strip())


def shown(treadle: Any, **environment: str) -> dict[str, tuple[Any, str]]:
    found = json.loads(treadle("config", "--json", **environment).out)
    return {name: (one["value"], one["from"]) for name, one in found.items()}


def test_an_option_the_environment_the_project_and_the_user_in_that_order(treadle: Any) -> None:
    for name, value in (("limits.steps", "4"), ("tool_calls", "7"), ("limits.usd", "0.10"), ("model", "offline")):
        assert treadle("config", "set", name, value).code == 0
    assert treadle("config", "set", "limits.steps", "3", "--project").code == 0
    mine, project = str(user_file(treadle)), str(treadle.folder / "treadle.toml")
    found = shown(treadle, TREADLE_MAX_TOKENS="9000")
    assert found["limits.steps"] == (3, project)
    assert found["limits.tool_calls"] == (7, mine)
    assert found["limits.usd"] == ("0.10", mine)
    assert found["limits.tokens"] == (9000, "TREADLE_MAX_TOKENS")
    assert found["limits.seconds"] == (None, "default")
    assert shown(treadle, TREADLE_MAX_STEPS="2")["limits.steps"] == (2, "TREADLE_MAX_STEPS")

    def held(*options: str, **environment: str) -> list[Any]:
        asked = json.loads(treadle("ask", "25 * 4", "--json", *options, **environment).out)
        bounds = {one["name"]: one["bound"] for one in asked["steps"][0]["decision"]["checks"]}
        return [bounds["steps"], bounds["tool_calls"]]

    assert held() == [3, 7]
    assert held(TREADLE_MAX_STEPS="2") == [2, 7]
    assert held("--max-steps", "5", TREADLE_MAX_STEPS="2") == [5, 7]
    assert treadle("config", "unset", "limits.steps", "--project").code == 0
    assert shown(treadle)["limits.steps"] == (4, mine)


def test_a_model_and_skills_are_taken_from_the_file(treadle: Any) -> None:
    treadle("config", "set", "skills", "inventory")
    (treadle.folder / "mine.py").write_text(
        "from treadle.testing import ScriptedModel\nmodel = ScriptedModel(['The answer is 42.'])\n", "utf-8"
    )
    assert treadle("config", "set", "model", f"{treadle.folder}/mine.py:model").code == 0
    done = treadle("ask", "What?", "--json")
    assert json.loads(done.out)["text"] == "The answer is 42."
    assert f"named by {user_file(treadle)}" in done.err
    assert "3 tools offered" in treadle("ask", "What?", "--trace", "--model", "offline").err


def test_what_is_no_setting_is_an_error_with_what_is_meant(treadle: Any) -> None:
    wrong = treadle("config", "set", "limits.step", "3")
    assert wrong.code == 2
    assert "there is no setting 'limits.step'; did you mean 'limits.steps'?" in wrong.err
    for value in ("0", "-1", "1.5", "three", "true"):
        assert treadle("config", "set", "limits.steps", value).code == 2
    path = user_file(treadle)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('modle = "offline" # mine\n[limits]\nsteps = "3"\n', "utf-8")
    asked = treadle("ask", "2 * 3")
    assert asked.code == 2
    assert f"{path}: there is no setting 'modle'; did you mean 'model'?" in asked.err
    assert treadle("config", "unset", "modle").code == 0
    assert "limits.steps is a number" not in treadle("ask", "2 * 3").err
    assert "limits.steps is a whole number from 1, not 3" in treadle("ask", "2 * 3").err
    path.write_text("model = \n", "utf-8")
    assert "is not valid TOML" in treadle("config").err
    assert treadle("--help").code == treadle("config", "path").code == 0


def test_a_file_that_came_with_a_folder_does_nothing_until_it_is_allowed(treadle: Any) -> None:
    project = treadle.folder / "treadle.toml"
    project.write_text('model = "evil.py:model"\njournal = "theirs.db"\n', "utf-8")
    (treadle.folder / "evil.py").write_text("open('loaded', 'w').close()\n", "utf-8")
    done = treadle("ask", "2 * 3")
    assert "treadle.toml in this folder is not used" in done.err
    assert (done.code, "2 * 3 = 6" in done.out) == (0, True)
    assert not (treadle.folder / "loaded").exists()
    assert not (treadle.folder / "theirs.db").exists()
    assert treadle("config", "set", "limits.steps", "3", "--project").code == 2
    allowed = treadle("config", "trust")
    assert "model = evil.py:model" in allowed.out
    assert treadle("config", "get", "journal").out.strip() == str(treadle.folder / "theirs.db")
    project.write_text('model = "evil.py:model"\njournal = "others.db"\n', "utf-8")
    again = treadle("config", "get", "journal")
    assert "others.db" not in again.out
    assert "is not used" in again.err


@pytest.mark.parametrize("model", ["mine.py:model", "my_module:model", "offlin"])
def test_the_users_own_file_loads_no_code_of_whatever_folder_it_is(treadle: Any, model: str) -> None:
    assert treadle("config", "set", "model", model).code == 2
    assert not user_file(treadle).exists()


def test_a_file_keeps_its_comments_is_its_owners_and_shows_no_password(treadle: Any) -> None:
    path = user_file(treadle)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# mine\n[limits]\nsteps = 4 # few\n", "utf-8")
    treadle("config", "set", "journal", "postgresql://me:hush@db.example/runs")
    treadle("config", "set", "limits.usd", "0.10")
    assert path.read_text("utf-8") == (
        '# mine\njournal = "postgresql://me:hush@db.example/runs"\n\n[limits]\nsteps = 4 # few\nusd = 0.10\n'
    )
    assert path.stat().st_mode & 0o777 == 0o600
    for words in (["config"], ["config", "--json"], ["config", "get", "journal"], ["config", "set", "steps", "5"]):
        done = treadle(*words)
        assert "hush" not in done.out + done.err
    treadle("config", "set", "journal", "here.db")
    assert treadle("config", "get", "journal").out.strip() == str(treadle.folder / "here.db")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("limits = 5", "there is no setting 'limits'"),
        ("[limits.steps]\nx = 1", "limits.steps is a whole number from 1"),
        ('skills = "basics"', "skills is a list of names"),
        ("[model]\na = 1", "model is a text"),
        ('journal = "postgres:/x"', "begins with postgresql://"),
        ("limits.usd = nan", "limits.usd is a number from 0"),
        ("limits.steps = true", "limits.steps is a whole number from 1"),
    ],
)
def test_a_file_of_any_kind_is_told_in_words(treadle: Any, body: str, told: str) -> None:
    path = user_file(treadle)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body, "utf-8")
    done = treadle("ask", "2 * 3")
    assert (done.code, told in done.err, "fault in treadle" in done.err) == (2, True, False)


def test_a_place_that_cannot_be_written_is_told(treadle: Any) -> None:
    (treadle.folder / "file").write_text("", "utf-8")
    done = treadle("config", "set", "limits.steps", "3", HOME=str(treadle.folder / "file"))
    assert (done.code, "cannot be written" in done.err, "fault" in done.err) == (2, True, False)


def test_the_doctor_says_which_setting_is_bad(treadle: Any) -> None:
    path = user_file(treadle)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("limits.steps = 0", "utf-8")
    done = treadle("doctor", "--json")
    rows = {one["what"]: (one["state"], one["found"]) for one in json.loads(done.out)}
    assert done.code == 2
    assert rows["settings"] == ("bad", f"{path}: limits.steps is a whole number from 1, not 0")
    path.unlink()
    assert "TREADLE_MAX_STEPS" in treadle("doctor", TREADLE_MAX_STEPS="x").out


def test_a_folder_that_is_gone_is_no_fault(treadle: Any) -> None:
    gone = treadle.folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    assert treadle("config", "get", "limits.steps").out == "20\n"
    assert treadle("runs").code == 0


def test_a_limit_in_dollars_that_cannot_be_kept_is_told_with_the_place_that_sets_it(treadle: Any) -> None:
    """It named no option that was given, and nobody could see that a file of long ago had it."""
    treadle("config", "set", "limits.usd", "0.5")
    mine = user_file(treadle)
    asked = ("ask", "hi", "--model", "local:own@http://127.0.0.1:9/v1")
    assert f"The limit in dollars is set in {mine}: take it out" in treadle(*asked).err
    assert "is set in TREADLE_MAX_COST: take it out" in treadle(*asked, TREADLE_MAX_COST="0.7").err
    served = treadle("serve", "--model", "local:own@http://127.0.0.1:9/v1", "--port", "0").err
    for said in (treadle(*asked).err, served):
        # `serve` has no such option, and beside it the dollars of the file would still hold.
        assert "TREADLE_PRICES" in said
        assert "--max-tokens" not in said
    by_option = treadle(*asked, "--max-cost", "3").err
    assert "Limits(usd=3" in by_option
    assert "say --max-tokens" in by_option
    assert "is set in" not in by_option
