"""What is changed is called as it was written: a sign beside a word belongs to it, and signs alone are a text."""

from typing import Any

import pytest

from treadle import Agent, tool

DONE: list[tuple[Any, ...]] = []


@tool
def delete_file(path: str) -> str:
    """Deletes a file."""
    DONE.append((path,))
    return "deleted"


@tool
def move_file(file: str, folder: str) -> str:
    """Moves a file to a folder."""
    DONE.append((file, folder))
    return "moved"


@tool
def assign(ticket: int, user: str) -> str:
    """Assigns a ticket to a user."""
    DONE.append((ticket, user))
    return "assigned"


@tool
def send_message(person: str, text: str) -> str:
    """Sends a message to a person."""
    DONE.append((person, text))
    return "sent"


@tool
def pay(to: str, amount: float) -> str:
    """Pays a person."""
    DONE.append((to, amount))
    return "paid"


TOOLS = [delete_file, move_file, assign, send_message, pay]


def done(order: str) -> list[tuple[Any, ...]]:
    DONE.clear()
    result = Agent("offline", tools=TOOLS).run_sync(order)
    assert result.finished
    assert DONE or "cannot" in result.text or "could not" in result.text
    return [*DONE]


@pytest.mark.parametrize(
    "order",
    [
        "Delete .env",
        "Delete *.log",
        "Delete a/b",
        "Delete ./a.txt",
        "Delete a.txt~",
        "Delete {name}",
        "Delete $HOME",
        "Delete -rf docs",
        "Move ~/notes to docs",
        "Move ../a.txt to docs",
        "Assign ticket 3 to [name]",
        "Assign ticket 3 to ~Ann",
        "Assign ticket ≠3 to Ann",
    ],
)
def test_no_word_is_changed_without_its_signs(order: str) -> None:
    """No file "env" is meant by ".env", and no "b" by "a/b"."""
    assert not done(order)


@pytest.mark.parametrize(
    ("order", "made"),
    [
        ("Delete /etc/hosts", ("/etc/hosts",)),
        ("Delete 'my file.txt'.", ("my file.txt",)),
        ("Delete a.txt!", ("a.txt",)),
        ("Assign #3 to Ann", (3, "Ann")),
        ("Assign ticket 3 (Ann).", (3, "Ann")),
        ("Pay Ann $50.", ("Ann", 50)),
        ("Send 'Hi' to #random", ("#random", "Hi")),
        ("Send 'Hi' to @ann.b", ("@ann.b", "Hi")),
        ("Pay Ann 50€", ("Ann", 50)),
    ],
)
def test_what_only_ends_or_opens_belongs_to_no_word(order: str, made: tuple[Any, ...]) -> None:
    assert done(order) == [made]


@pytest.mark.parametrize("text", ["👍", "!!!", "?"])
def test_signs_alone_are_a_text(text: str) -> None:
    """The planner gave up with an IndexError."""
    assert done(f'Send Ann the message "{text}"') == [("Ann", text)]
