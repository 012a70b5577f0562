"""Settings and keys that are given wrong."""

import os
from pathlib import Path
from typing import Any

import click
import pytest
from cli.test_config import Here

from treadle.cli import trust


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(tmp_path, monkeypatch, capsys)


def users(here: Here, body: str) -> Path:
    file = Path(here("config", "path").out.strip())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(body, "utf-8")
    return file


def test_a_limit_outside_of_its_table_is_an_error_and_not_left_aside(here: Here) -> None:
    file = users(here, "usd = 0.5\n")
    done = here("config", "get", "limits.usd")
    assert done.code == 2
    assert f"{file}: there is no setting 'usd'; did you mean 'limits.usd'?" in done.err
    assert here("ask", "2 * 3").code == 2
    assert here("config", "unset", "usd").code == 0
    assert here("config", "set", "usd", "0.5").code == 0
    assert here("config", "get", "limits.usd").out == "0.5\n"


@pytest.mark.parametrize(
    "body", ["model = " + "[" * 5000 + "]" * 5000, "[limits]\nsteps = " + "9" * 5000], ids=["deep", "digits"]
)
def test_a_file_that_cannot_be_read_whole_is_no_fault_of_treadles(here: Here, body: str) -> None:
    (here.folder / "treadle.toml").write_text(body, "utf-8")
    done = here("config", "trust")
    assert done.code == 2
    assert "treadle.toml" in done.err
    assert "fault" not in done.err
    assert len(done.err) < 1000


@pytest.mark.parametrize("amount", ["1e-99999999", "1E-16", "-1e-99999999", "0e-99999999"])
def test_an_amount_of_more_places_than_can_be_summed_is_refused(here: Here, amount: str) -> None:
    assert here("config", "set", "usd", amount).code == 2
    assert "limits.usd" in here("config", "get", "usd", TREADLE_MAX_COST=amount).err
    users(here, f"[limits]\nusd = {amount}\n")
    assert here("config", "get", "usd").code == 2


@pytest.mark.parametrize("address", ["postgres://me:hunter2@127.0.0.1/db", "host=127.0.0.1 dbname=db password=hunter2"])
def test_no_password_is_put_into_the_file_that_others_read(here: Here, address: str) -> None:
    done = here("config", "set", "--project", "journal", address)
    assert done.code == 2
    assert "the address has a password" in done.err
    assert "hunter2" not in done.err + done.out
    assert not (here.folder / "treadle.toml").exists()
    assert here("config", "set", "--project", "journal", "postgres://me@127.0.0.1/db").code == 0
    assert here("config", "set", "journal", address).code == 0


@pytest.mark.parametrize(
    ("name", "most"),
    [("limits.steps", 2**63 - 1), ("limits.tokens", 2**63 - 1), ("limits.usd", 10**15), ("limits.seconds", 10**15)],
)
def test_a_number_that_is_too_large_is_told_how_large_one_may_be(here: Here, name: str, most: int) -> None:
    assert f"to {most}, not 99999999999999999999" in here("config", "set", name, "9" * 20).err
    assert f"to {most}, not {most + 1}" in here("config", "set", name, str(most + 1)).err
    assert f"to {most}" not in here("config", "set", name, "-1").err
    # What may be set may be run with: an amount that was set, and that no run takes, ended in an internal error.
    assert here("config", "set", name, str(most)).code == 0
    assert here("ask", "What is 2 + 2?").code == 0


@pytest.mark.parametrize("option", ["--max-cost", "--timeout"])
def test_an_amount_that_no_run_takes_is_refused_by_its_option(here: Here, option: str) -> None:
    done = here("ask", "What is 2 + 2?", option, "1e17")
    assert done.code == 2
    assert f"Invalid value for '{option}'" in done.err
    assert here("ask", "What is 2 + 2?", option, "1e15").code == 0


def test_a_provider_without_a_model_is_no_setting(here: Here) -> None:
    done = here("config", "set", "model", "ollama:")
    assert (done.code, "'ollama:' names no model; write ollama:NAME" in done.err) == (2, True), done.err
    assert here("config", "get", "model").out.strip() != "ollama:"


ODD = [
    "postgresql://me:hun#ter2@127.0.0.1:1/db",
    "postgresql://me:hun?ter2@127.0.0.1:1/db",
    "postgresql://me:hun[ter2@127.0.0.1:1/db",
    "postgresql://me:hun]ter2@127.0.0.1:1/db?schema=mine",
    "postgresql://me:hun/ter2@127.0.0.1:1/db",
    "postgresql://me:hun@ter2@127.0.0.1:1/db",
    "postgresql://me:hun@ter2:x@127.0.0.1:1/db",
    "postgresql://me:hun#ter2@[::1]:1/db?connect_timeout=2",
    "postgresql://127.0.0.1:1/db#x?user=me&password=hunter2",
    "host=127.0.0.1 port=1 password='a://hunter2'",
    "host=127.0.0.1 port=1 password=hun\\ ter2",
    "host=127.0.0.1 port=1 password='hun ter2",
]


@pytest.mark.parametrize("address", ODD)
def test_a_password_is_one_whatever_signs_are_in_it(here: Here, address: str) -> None:
    """libpq takes a password as it is, up to the @: what another reader of addresses makes of it counts for nothing."""
    refused = here("config", "set", "--project", "journal", address)
    assert "the address has a password" in refused.err
    assert not (here.folder / "treadle.toml").exists()
    for words in (
        ("config", "set", "journal", address),
        ("config",),
        ("config", "--json"),
        ("config", "get", "journal"),
        ("runs",),
        ("runs", "--journal", address),
        ("doctor", "--journal", address),
        ("ask", "1 + 1", "--model", "offline", "--journal", address),
    ):
        done = here(*words)
        assert "ter2" not in done.out + done.err, words
        assert "fault in treadle" not in done.out + done.err


@pytest.mark.parametrize("address", ["postgresql://[bad/db", "postgresql://127.0.0.1]/db"])
def test_an_address_that_nobody_can_read_is_no_fault_of_treadles(here: Here, address: str) -> None:
    done = here("runs", "--journal", address)
    assert done.code == 2
    assert "postgresql://" in done.err


@pytest.mark.parametrize(
    "address",
    ["postgresql//me:hunter2@db/x", "postgres:me:hunter2@db", "mysql://me:hunter2@db", "'postgres://me:hunter2@db/x'"],
)
def test_what_is_no_address_of_a_journal_is_not_set(here: Here, address: str) -> None:
    done = here("config", "set", "journal", address)
    assert done.code == 2
    assert "hunter2" not in done.out + done.err
    assert "postgresql://" in done.err
    assert not Path(here("config", "path").out.strip()).exists()


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_a_link_that_came_with_a_folder_is_not_written_through(here: Here) -> None:
    elsewhere = here.folder / "elsewhere"
    (here.folder / "treadle.toml").symlink_to(elsewhere)
    assert here("config", "set", "--project", "usd", "1").code == 2
    assert not elsewhere.exists()
    (here.folder / "treadle.toml").unlink()
    elsewhere.write_text("mine", "utf-8")
    (here.folder / f".treadle.toml.{os.getpid()}").symlink_to(elsewhere)
    assert here("config", "set", "--project", "usd", "1").code == 0
    assert elsewhere.read_text("utf-8") == "mine"
    assert (here.folder / "treadle.toml").read_text("utf-8") == "[limits]\nusd = 1\n"


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_ones_own_file_may_be_a_link_to_what_is_still_to_be_written(here: Here) -> None:
    file = users(here, "")
    file.unlink()
    file.symlink_to(here.folder / "dotfile.toml")
    assert here("config", "set", "usd", "1").code == 0
    assert (here.folder / "dotfile.toml").read_text("utf-8") == "[limits]\nusd = 1\n"


@pytest.mark.skipif(os.name == "nt", reason="needs links and pipes")
@pytest.mark.parametrize("words", [("config",), ("config", "get", "usd"), ("ask", "What is 2 * 3?")], ids=" ".join)
def test_limits_that_cannot_be_read_are_not_left_out_unsaid(here: Here, words: tuple[str, ...]) -> None:
    """Behind a link whose other end was gone, "no file sets anything": a run went on without the user's limits."""
    file = users(here, "[limits]\nusd = 1\n")
    makes = {
        "No such file": lambda: file.symlink_to(here.folder / "unmounted.toml"),
        "Is a directory": file.mkdir,
        "is no regular file": lambda: os.mkfifo(file),
        "Too many levels": lambda: file.symlink_to(file.name),
    }
    for told, make in makes.items():
        file.rmdir() if file.is_dir() else file.unlink()
        make()
        done = here(*words)
        assert (done.code, str(file) in done.err, told in done.err) == (2, True, True), done


@pytest.mark.skipif(os.name == "nt", reason="needs links and pipes")
def test_settings_are_not_written_in_the_place_of_what_is_no_file(here: Here) -> None:
    """A link to a device is how people say that there are none: "config set" of root's replaced the device."""
    file = users(here, "")
    file.unlink()
    os.mkfifo(here.folder / "device")
    file.symlink_to(here.folder / "device")
    done = here("config", "set", "usd", "1")
    assert (done.code, "is no regular file" in done.err) == (2, True), done
    assert (here.folder / "device").is_fifo()
    file.unlink()
    file.symlink_to(os.devnull)
    assert (here("config").code, here("config", "get", "usd").code) == (0, 0)
    with pytest.raises(click.UsageError, match="no regular file"):
        trust.write_own(here.folder / "device", "")
    assert (here.folder / "device").is_fifo()


def test_no_skills_are_told_as_that(here: Here) -> None:
    assert here("config", "set", "skills", "").out.startswith("skills is none, in ")
    assert here("config", "get", "skills").out == "none\n"


def test_what_is_allowed_is_what_was_shown(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that changes while it is being allowed is not allowed as it has become."""
    project = here.folder / "treadle.toml"
    project.write_text("[limits]\nsteps = 3\n", "utf-8")
    allowed = trust.trust

    def changed(*given: Any) -> None:
        project.write_text('model = "evil.py:model"\n', "utf-8")
        allowed(*given)

    monkeypatch.setattr("treadle.cli.commands.config.trust", changed)
    assert "steps = 3" in here("config", "trust").out
    assert "evil" not in here("config", "get", "model").out


LEAKS = '''
from keyring.backend import KeyringBackend

class Leaks(KeyringBackend):
    """A keyring whose errors hold what it was given."""
    priority = 1

    def set_password(self, service, username, password):
        raise TypeError(f"cannot keep {password}")

    def get_password(self, service, username):
        return None

    def delete_password(self, service, username):
        raise TypeError("sk-ant-api-1 stays")
'''


def test_no_error_of_a_keyring_tells_a_key(treadle: Any) -> None:
    pytest.importorskip("keyring")
    (treadle.folder / "ring.py").write_text(LEAKS, "utf-8")
    treadle.environment |= {"PYTHON_KEYRING_BACKEND": "ring.Leaks"}
    done = treadle("--debug", "keys", "set", "anthropic", input="sk-ant-api-1\n")
    assert done.code == 2
    assert "the keyring did not take the key (TypeError)" in done.err
    assert "sk-ant" not in done.out + done.err
