"""A run that is not there is not called damaged, and nothing is offered to be done with it."""

import urllib.request
from typing import Any


def _offered(walk: Any) -> list[str]:
    names = ("Go on", "Fork", "Replay", "Delete", "Approve", "Cancel")
    return [name for name in names if walk.page.get_by_role("button", name=name).count()]


def test_the_address_of_a_run_that_is_not_there_says_so_and_offers_nothing(walk: Any, server: Any) -> None:
    walk.page.goto(f"{server.address}/runs/nothing")
    walk.sees("there is no run 'nothing'")
    walk.status("gone")
    assert walk.page.get_by_text("damaged").count() == 0
    assert _offered(walk) == []


def test_a_run_that_is_deleted_while_it_is_looked_at_is_gone_and_what_was_seen_stays(walk: Any, server: Any) -> None:
    run = walk.ask("shop", "please pay Ada")
    walk.page.locator(".approval").wait_for()
    urllib.request.urlopen(urllib.request.Request(f"{server.address}/api/runs/{run}", method="DELETE")).close()
    walk.status("gone")
    walk.sees("please pay Ada")
    walk.page.locator(".approval").wait_for(state="detached")
    assert _offered(walk) == []
    assert walk.page.get_by_text("connection lost").count() == 0
