"""`treadle keys`: keys in the system's keyring, which nobody is shown."""

import json
from typing import Any

import pytest

RING = '''
import json, os, pathlib
import keyring.backend

class Ring(keyring.backend.KeyringBackend):
    """A keyring in a file, for tests."""
    priority = 1
    name = "a ring in a file"
    path = pathlib.Path(os.environ["RING"])

    def _all(self):
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def get_password(self, service, username):
        return self._all().get(f"{service}/{username}")

    def set_password(self, service, username, password):
        self.path.write_text(json.dumps(self._all() | {f"{service}/{username}": password}))

    def delete_password(self, service, username):
        found = self._all()
        found.pop(f"{service}/{username}")
        self.path.write_text(json.dumps(found))

class Locked(Ring):
    def get_password(self, service, username):
        raise RuntimeError("sk-ant-api-1 is locked")
'''
KEY = "sk-ant-api-1"


@pytest.fixture
def ringed(treadle: Any) -> Any:
    pytest.importorskip("keyring")
    (treadle.folder / "ring.py").write_text(RING, "utf-8")
    treadle.environment |= {"PYTHON_KEYRING_BACKEND": "ring.Ring", "RING": str(treadle.folder / "ring.json")}
    return treadle


def test_a_key_is_stored_used_listed_and_removed_and_never_shown(ringed: Any) -> None:
    done = [ringed("keys", "set", "anthropic", input=f"{KEY}\n")]
    assert json.loads((ringed.folder / "ring.json").read_text()) == {"treadle/ANTHROPIC_API_KEY": KEY}
    done.append(ringed("models", "--json"))
    chosen = json.loads(done[-1].out)
    assert (chosen["chosen"].partition(":")[0], chosen["why"]) == ("anthropic", "ANTHROPIC_API_KEY is set")
    done += [ringed("doctor"), ringed("keys", "ls"), ringed("config")]
    assert "ANTHROPIC_API_KEY from the keyring" in done[-3].out
    assert "keyring" in done[-2].out
    done.append(ringed("keys", "ls", "--json", ANTHROPIC_API_KEY="sk-other"))
    assert json.loads(done[-1].out)[0]["in"] == ["environment", "keyring"]
    done += [ringed("keys", "rm", "ANTHROPIC_API_KEY"), ringed("models", "--json"), ringed("keys", "rm", "anthropic")]
    assert json.loads(done[-2].out)["chosen"] == "offline"
    assert [one.code for one in done] == [0] * (len(done) - 1) + [2]
    assert not [one for one in done if KEY in one.out + one.err]
    files = [path for path in ringed.folder.rglob("*") if path.is_file() and "ring" not in path.name]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_the_environment_goes_before_the_keyring(ringed: Any) -> None:
    ringed("keys", "set", "groq", input=KEY)
    (ringed.folder / "told.py").write_text(
        "import os\nfrom treadle.testing import ScriptedModel\n"
        "model = ScriptedModel([f\"it ends in {os.environ['GROQ_API_KEY'][-1]}\"])\n", "utf-8",
    )  # fmt: skip
    assert "it ends in 1" in ringed("ask", "Which?", "--model", "told.py:model").out
    assert "it ends in 2" in ringed("ask", "Which?", "--model", "told.py:model", GROQ_API_KEY="gsk-2").out


@pytest.mark.parametrize("words", [[KEY], ["--key", KEY], [f"--key={KEY}"]])
def test_a_key_among_the_arguments_is_refused_and_not_repeated(ringed: Any, words: list[str]) -> None:
    done = ringed("keys", "set", "anthropic", *words, input="")
    assert done.code == 2
    assert "other users see it in the list of processes" in done.err
    assert KEY not in done.out + done.err
    assert not (ringed.folder / "ring.json").exists()


def test_a_key_in_the_place_of_a_name_is_not_repeated(ringed: Any) -> None:
    for command in ("set", "rm"):
        done = ringed("keys", command, KEY, input="")
        assert (done.code, KEY in done.out + done.err) == (2, False)


def test_a_machine_without_a_keyring_is_told_so(treadle: Any) -> None:
    pytest.importorskip("keyring")
    for backend, told in (
        ("keyring.backends.fail.Keyring", "no keyring"),
        ("keyring.backends.null.Keyring", "keeps nothing"),
    ):
        done = treadle("keys", "set", "openai", input=KEY, PYTHON_KEYRING_BACKEND=backend)
        assert done.code == 2
        assert told in done.err
        assert "in the environment, or in a file .env" in done.err
        assert KEY not in done.out + done.err


def test_a_keyring_that_fails_leaves_other_questions_alone(ringed: Any) -> None:
    ringed("keys", "set", "anthropic", input=KEY)
    done = ringed("ask", "2 * 3", PYTHON_KEYRING_BACKEND="ring.Locked")
    assert (done.code, "2 * 3 = 6" in done.out) == (0, True)
    assert "the stored keys are left aside: the keyring cannot be read (RuntimeError)" in done.err
    assert KEY not in done.out + done.err


def test_no_key_is_seen_as_it_is_typed(ringed: Any, terminal: Any) -> None:
    with_terminal = terminal("keys", "set", "openai")
    with_terminal.until("it is not shown")
    with_terminal.type(f"{KEY}\n")
    assert with_terminal.end() == 0
    assert KEY not in with_terminal.shown
    assert (ringed.folder / "ring.json").exists()


def test_the_keyring_is_not_asked_for_a_model_that_needs_no_key(ringed: Any) -> None:
    ringed("keys", "set", "anthropic", input=KEY)
    done = ringed("ask", "2 * 3", "--model", "offline", PYTHON_KEYRING_BACKEND="ring.Locked")
    assert (done.code, "left aside" in done.err) == (0, False)
