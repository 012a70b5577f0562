"""Walks through the page in a real Chromium, against a real server: what a person sees and does."""

import json
import urllib.request
from typing import Any

import pytest

pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")

DEMO = "Compare the amount totals between fi_reporting and consolidation_mart for company 1001 in period 202401"


def asked(server: Any, path: str) -> Any:
    with urllib.request.urlopen(f"{server.address}/{path}", timeout=10) as answer:
        return json.load(answer)


def test_the_demo_question_is_asked_watched_and_looked_into(walk: Any, server: Any) -> None:
    run = walk.ask("desk", DEMO)
    walk.status("finished")
    walk.sees("so fi_reporting is higher by 8,000.00")
    page = walk.page
    comparison = page.locator(".comparison")
    assert "1,500,000.00" in comparison.inner_text()
    # From a part to its keys, and from a key to its figures.
    comparison.get_by_role("button", name="202401").first.click()
    assert "Keys of period 202401" in comparison.inner_text()
    comparison.locator("tbody").last.get_by_role("button").first.click()
    assert "rows of A" in page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Waterfall").click()
    page.get_by_text("compare_sources (call_2)").wait_for()
    page.get_by_role("link", name="Inside the steps").click()
    page.get_by_role("link", name="Step 1 →").click()
    page.get_by_role("heading", name="Why it went on").wait_for()
    assert page.url.endswith(f"/runs/{run}/steps/1")
    shown = page.locator(".inside").inner_text()
    assert "None of what could have stopped it held." in shown
    assert "2 messages as in the step before" in shown
    page.get_by_role("button", name="As JSON").first.click()
    page.get_by_role("region", name="request", exact=True).wait_for()
    assert '"messages"' in page.get_by_role("region", name="request", exact=True).inner_text()


def test_an_edited_call_is_made_with_every_digit_that_was_seen(walk: Any, server: Any) -> None:
    run = walk.ask("shop", "please pay Ada")
    walk.status("waiting")
    approval = walk.page.locator(".approval")
    approval.wait_for()
    shown = approval.inner_text()
    # The whole call is in view, and what cannot be seen is an escape.
    assert "12345678901234567890.10" in shown
    assert "AT02\\u202e 1904" in shown
    assert "three\\u200bhidden" in shown
    assert "\u202e" not in shown
    approval.get_by_role("button", name="Edit").click()
    text = walk.page.get_by_label("Arguments, as a JSON object")
    assert "\u202e" not in text.input_value()
    text.fill("{")
    assert approval.get_by_role("button", name="Approve with these arguments").is_disabled()
    text.fill('{"iban":"AT02 1904","amount":98765432109876543210,"note":"ok"}')
    approval.get_by_role("button", name="Approve with these arguments").click()
    walk.status("finished")
    walk.sees("paid 98765432109876543210 to AT02 1904 (ok)")
    walk.sees("approved with other arguments by local")
    decided = [one for one in asked(server, f"api/runs/{run}/events")["events"] if one["type"] == "approval_decided"]
    assert [one["by"] for one in decided] == ["local"]


def test_a_denial_tells_the_model_why(walk: Any) -> None:
    walk.ask("shop", "please pay Ada")
    walk.page.locator(".approval").get_by_role("button", name="Deny").click()
    walk.page.get_by_label("Why not?").fill("no such account")
    walk.page.locator(".approval").get_by_role("button", name="Deny").click()
    walk.status("finished")
    walk.sees("no such account")


def test_a_run_is_reloaded_in_the_middle_spoken_to_and_cancelled(walk: Any, server: Any) -> None:
    run = walk.ask("shop", "search for weaving")
    walk.sees("searched 3 of 3 shelves")
    walk.page.reload()
    walk.status("running")
    walk.sees("I search.")
    said = walk.page.get_by_label("Say something to this run")
    said.fill("hurry up")
    said.press("Enter")
    walk.page.locator(".row", has_text="hurry up").wait_for()
    walk.page.get_by_role("button", name="Cancel").click()
    walk.status("cancelled")
    assert asked(server, f"api/runs/{run}")["status"] == "cancelled"


def test_a_server_that_is_killed_and_started_again_goes_on_where_it_was(walk: Any, server: Any) -> None:
    run = walk.ask("shop", "search for weaving")
    walk.sees("searched 3 of 3 shelves")
    server.kill()
    walk.page.get_by_text("connection lost").wait_for()
    server.open("search")
    server.start()
    walk.page.get_by_text("connection lost").wait_for(state="hidden")
    walk.status("finished")
    walk.sees("It is done: three books about weaving")
    # What is shown is what a page that knows nothing of the kill shows.
    before = walk.page.locator(".windowed").inner_text()
    walk.page.reload()
    walk.sees("It is done: three books about weaving")
    assert walk.page.locator(".windowed").inner_text() == before
    numbers = [one["number"] for one in asked(server, f"api/runs/{run}/events")["events"]]
    assert numbers == list(range(1, len(numbers) + 1))


def test_text_arrives_while_it_is_written(walk: Any, server: Any) -> None:
    walk.ask("shop", "stream a story")
    walk.sees("came back with a story.")
    assert walk.page.locator(".row.live").count() == 1
    server.open("stream")
    walk.status("finished")
    assert walk.page.locator(".row.live").count() == 0
    assert walk.page.locator(".said-by-model").count() == 1


def test_a_fork_with_another_result_is_compared_with_its_run(walk: Any, server: Any) -> None:
    run = walk.ask("shop", "look Ada up")
    walk.status("finished")
    page = walk.page
    page.get_by_role("button", name="Fork").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("From step").select_option("1")
    dialog.locator("fieldset", has_text="broken").get_by_role("button", name="Another result").click()
    dialog.get_by_label("Result instead").fill("it was 9007199254740993.10")
    dialog.get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda address: "/runs/" in address and run not in address)
    fork = page.url.rpartition("/")[2]
    walk.status("finished")
    walk.sees("It is done: it was 9007199254740993.10")
    page.goto(f"{server.address}/compare?a={run}&b={fork}")
    walk.sees("They part in step 0: what was given differs.")
    assert "9007199254740993.10" in page.locator(".pair.parts").inner_text()
    page.goto(f"{server.address}/runs/{fork}")
    page.get_by_role("button", name="Replay").click()
    walk.sees("It comes out the same, event by event.")


def test_hostile_texts_are_texts(walk: Any) -> None:
    walk.ask("shop", "say something hostile")
    walk.status("finished")
    page = walk.page
    said = page.locator(".said-by-model")
    text = said.inner_text()
    assert '<script>document.title = "owned"</script>' in text
    assert "9007199254740993" in text
    assert "\u202e" not in text
    assert "\\u202e" in text
    assert said.locator("script, img, iframe, a").count() == 0
    # An address is seen before it can be followed, and one that is none of the web cannot be.
    said.get_by_role("button", name="address").nth(1).click()
    assert said.locator("a").count() == 0
    said.get_by_role("button", name="address").nth(2).click()
    link = said.get_by_role("link")
    assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    assert link.get_attribute("href") == "http://127.0.0.1:9/shop?q=1"
    walk.ask("shop", "look Ada up")
    walk.status("finished")
    page.locator("summary", has_text="Result").first.click()
    page.get_by_role("region", name="result of look_up").wait_for()
    found = json.loads(page.get_by_role("region", name="result of look_up").inner_text())
    assert found["note"].startswith('# <script>document.title = "owned"</script>')
    assert "owned" not in page.title()


def test_a_conversation_goes_on_and_decides_inline(walk: Any, server: Any) -> None:
    page = walk.page
    page.goto(f"{server.address}/chat")
    page.get_by_role("button", name="shop", exact=True).click()
    page.get_by_label("Say something to shop").fill("please pay Ada")
    page.keyboard.press("Enter")
    page.locator(".approval").get_by_role("button", name="Approve").click()
    walk.sees("It is done: paid")
    page.get_by_label("Say something", exact=True).fill("thank you")
    page.keyboard.press("Enter")
    walk.sees("You said thank you.")
    assert page.locator(".row.earlier").count() >= 2
    page.reload()
    walk.sees("You said thank you.")
    assert len(asked(server, "api/conversations")["conversations"]) == 1


def test_the_keyboard_alone_is_enough(walk: Any, server: Any) -> None:
    page = walk.page
    page.goto(f"{server.address}/")
    page.get_by_label("Ask desk").wait_for()

    def tab_to(label: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            name = page.evaluate("() => document.activeElement.ariaLabel || document.activeElement.textContent || ''")
            if name.strip().startswith(label):
                return
        raise AssertionError(f"no Tab leads to {label!r}")

    tab_to("Agent")
    page.keyboard.press("ArrowDown")
    tab_to("Ask shop")
    page.keyboard.type("please pay Ada")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*")
    page.locator(".approval").wait_for()
    tab_to("Approve")
    assert page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    walk.status("finished")
    assert "answered" in page.get_by_role("status").all_inner_texts()[-1]


def test_a_big_run_keeps_a_small_page(walk: Any, server: Any) -> None:
    walk.ask("shop", "count to 1300")
    walk.status("finished")
    page = walk.page
    page.reload()
    page.get_by_text("events", exact=False).first.wait_for()
    page.wait_for_function("() => /[45],\\d{3} events/.test(document.querySelector('.story-bar').textContent)")
    assert page.locator(".windowed [role=listitem]").count() < 80
    page.locator(".windowed").evaluate("box => { box.scrollTop = box.scrollHeight / 2 }")
    page.locator(".windowed").get_by_text("Number 6").first.wait_for()
    assert page.locator(".windowed [role=listitem]").count() < 80
    page.get_by_label("Find in this run").fill("Number 777.")
    page.get_by_text("1 of", exact=False).wait_for()
    walk.sees("Number 777.")


def test_a_run_below_another_is_nested_and_reached(walk: Any) -> None:
    walk.ask("manager", "ask the shop")
    walk.status("finished")
    walk.page.get_by_role("link", name="Waterfall").click()
    walk.page.locator(".bar-row.of-run").wait_for()
    walk.page.get_by_text("look_up (look_0)").wait_for()
    walk.page.get_by_role("link", name="Story").click()
    walk.page.get_by_role("link", name="its run").click()
    walk.sees("I look both up.")
    walk.sees("works for")


def test_files_are_kept(walk: Any) -> None:
    walk.ask("shop", "say something hostile")
    walk.status("finished")
    for label, beginning in (("A page that opens offline", "<!doctype html>"), ("Markdown", "#"), ("JSON Lines", "{")):
        walk.page.locator(".menu summary").click()
        with walk.page.expect_download() as kept:
            walk.page.get_by_role("link", name=label).click()
        text = kept.value.path().read_text(encoding="utf-8")
        assert text.lower().startswith(beginning)
        walk.page.locator(".menu summary").click()


def test_a_narrow_screen_and_the_dark_and_paper_have_it_all(walk: Any) -> None:
    walk.ask("shop", "look Ada up")
    walk.status("finished")
    page = walk.page
    for path in ("", "/waterfall", "/steps/0"):
        page.set_viewport_size({"width": 380, "height": 780})
        page.goto(f"{page.url.partition('/runs/')[0]}/runs/{page.url.partition('/runs/')[2].partition('/')[0]}{path}")
        page.locator(".run-head .status").wait_for()
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 380
    page.set_viewport_size({"width": 1280, "height": 820})
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(19, 22, 23)"
    page.emulate_media(media="print", color_scheme="light")
    assert not page.locator(".acts").is_visible()


def test_on_a_phone_a_conversation_has_its_title_and_its_call_in_view(walk: Any, server: Any) -> None:
    page = walk.page
    page.set_viewport_size({"width": 380, "height": 780})
    page.goto(f"{server.address}/chat")
    page.get_by_role("button", name="shop", exact=True).click()
    page.get_by_label("Say something to shop").fill("Good morning. Would you please pay Ada?")
    page.keyboard.press("Enter")
    page.locator(".approval").wait_for()
    assert page.locator(".talk > header h1").bounding_box()["width"] > 330
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 380
    page.locator(".approval").get_by_role("button", name="Approve").click()
    walk.sees("It is done: paid")


@pytest.mark.parametrize("height", [820, 500])
def test_what_forks_stays_in_view_however_much_there_is_to_choose(walk: Any, height: int) -> None:
    walk.ask("shop", "look Ada up")
    walk.status("finished")
    page = walk.page
    page.set_viewport_size({"width": 1080, "height": height})
    page.get_by_role("button", name="Fork").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("From step").select_option("1")
    for place in ("look_up", "broken"):
        dialog.locator("fieldset", has_text=place).first.get_by_role("button", name="Another result").click()
        title = dialog.get_by_role("heading", name="Fork this run").bounding_box()
        assert title["y"] > dialog.bounding_box()["y"]
        box = dialog.get_by_role("button", name="Fork", exact=True).bounding_box()
        assert 0 < box["y"] < height - box["height"]
    # What is typed into is not behind what stays.
    field = dialog.get_by_label("Result instead").last
    field.focus()
    assert field.evaluate("one => one.getBoundingClientRect().top") < box["y"] - 20


def test_a_token_is_asked_for_once(guarded: Any) -> None:
    server, walk = guarded
    page = walk.page
    page.goto(f"{server.address}/runs")
    page.get_by_label("The server's token").fill("another token that is wrong")
    page.get_by_role("button", name="Log in").click()
    walk.sees("the token is wrong")
    page.get_by_label("The server's token").fill("a token that nobody guesses")
    page.get_by_role("button", name="Log in").click()
    page.get_by_label("Ask desk").wait_for()
    page.reload()
    page.get_by_label("Ask desk").wait_for()
    # Whom the server does not know any more is asked again.
    page.context.clear_cookies()
    page.get_by_label("The server's token").wait_for()
    # No script of the page can read what the browser keeps.
    assert page.evaluate("() => document.cookie + JSON.stringify({ ...localStorage })").count("token") == 0


def test_a_run_is_paused_and_goes_on(walk: Any, server: Any) -> None:
    walk.ask("shop", "search for weaving")
    walk.sees("searched 3 of 3 shelves")
    with walk.page.expect_response("**/pause"):
        walk.page.get_by_role("button", name="Pause").click()
    server.open("search")
    walk.sees("paused by local")
    walk.page.get_by_role("button", name="Go on").click()
    walk.page.get_by_label("Say something (may stay empty)").fill("and look under the loom")
    walk.page.get_by_role("dialog").get_by_role("button", name="Go on", exact=True).click()
    walk.status("finished")
    walk.page.locator(".row", has_text="look under the loom").wait_for()


def test_a_write_that_was_cut_off_is_never_made_again_unasked(walk: Any, server: Any) -> None:
    walk.ask("shop", "please send it")
    walk.sees("under way")
    server.kill()
    server.start()
    approval = walk.page.locator(".approval")
    approval.get_by_text("nobody knows whether it was done").wait_for()
    assert approval.get_by_role("button").all_inner_texts() == ["Run it again", "Deny …", "Give a result …"]
    approval.get_by_role("button", name="Give a result").click()
    walk.page.get_by_label("The result, as text or JSON").fill("the bank says that it arrived")
    walk.page.get_by_role("button", name="Give this result").click()
    walk.status("finished")
    walk.sees("It is done: the bank says that it arrived")


def test_two_pages_decide_and_one_is_told(walk: Any, server: Any) -> None:
    walk.ask("shop", "please pay Ada")
    walk.page.locator(".approval").wait_for()
    other = walk.page.context.new_page()
    # The second page hears nothing of what comes after the pause.
    other.route("**/stream**", lambda route: route.continue_(url=f"{route.request.url}&until=pause"))
    other.goto(walk.page.url)
    other.locator(".approval").wait_for()
    other.wait_for_load_state("networkidle")
    walk.page.locator(".approval").get_by_role("button", name="Approve").click()
    walk.status("finished")
    other.locator(".approval").get_by_role("button", name="Deny").click()
    other.get_by_label("Why not?").fill("too late")
    other.locator(".approval").get_by_role("button", name="Deny").click()
    other.get_by_role("alert").get_by_text("does not wait for a decision").wait_for()
    other.reload()
    other.get_by_text("It is done: paid").first.wait_for()
    assert other.get_by_text("denied").count() == 0


def test_a_page_that_nobody_looks_at_lets_its_connection_go_and_misses_nothing(walk: Any, server: Any) -> None:
    page = walk.page
    page.clock.install()
    walk.ask("shop", "stream a story")
    page.clock.run_for(1000)
    walk.sees("came back with a story.")
    look = "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
    look += " document.dispatchEvent(new Event('visibilitychange')) }"
    page.evaluate(look, True)
    with page.expect_event("requestfailed", lambda request: "/stream" in request.url):
        page.clock.run_for(21_000)
    server.open("stream")
    page.evaluate(look, False)
    page.clock.resume()
    walk.status("finished")
    # What was shown live before stands there once.
    assert page.locator(".windowed").inner_text().count("Once a shuttle") == 1
    walk.sees("The end.")


def test_a_call_of_a_run_below_is_decided_from_above(walk: Any) -> None:
    walk.ask("manager", "have the shop pay")
    walk.status("waiting")
    walk.page.locator(".approval").get_by_role("button", name="Approve").click()
    walk.status("finished")
    walk.sees("The shop says: It is done: paid")


def test_a_call_of_a_run_below_that_is_denied_is_not_called_approved_above(walk: Any) -> None:
    walk.ask("manager", "have the shop pay")
    walk.status("waiting")
    walk.page.locator(".approval").get_by_role("button", name="Deny").click()
    walk.page.get_by_label("Why not?").fill("she was paid")
    walk.page.locator(".approval").get_by_role("button", name="Deny").click()
    walk.status("finished")
    walk.sees("decided in its own run by local")
    assert walk.page.get_by_text("approved by").count() == 0


def test_what_is_said_of_a_server_that_was_away_is_true_then_and_after(walk: Any, server: Any) -> None:
    walk.ask("shop", "please pay Ada")
    approval = walk.page.locator(".approval")
    approval.wait_for()
    server.kill()
    walk.sees("connection lost, trying again")
    approval.get_by_role("button", name="Approve").click()
    approval.get_by_role("alert").get_by_text("Whether this was done is not known").wait_for()
    assert approval.get_by_text("this page tries again").count() == 0
    walk.page.locator(".run-page > .failure").wait_for()
    server.start()
    walk.page.get_by_text("connection lost").wait_for(state="detached")
    walk.page.locator(".run-page > .failure").wait_for(state="detached")
    approval.get_by_role("button", name="Approve").click()
    walk.status("finished")
    walk.said.clear()  # The browser tells of each connection that was lost.


def test_a_stop_that_does_not_reach_the_server_is_said_in_the_conversation(walk: Any, server: Any) -> None:
    walk.page.goto(f"{server.address}/chat")
    walk.page.get_by_role("button", name="shop", exact=True).click()
    walk.page.get_by_label("Say something to shop").fill("search for weaving")
    walk.page.get_by_role("button", name="Send").click()
    walk.sees("I search.")
    server.kill()
    walk.page.get_by_role("button", name="Stop").click()
    walk.page.get_by_role("alert").get_by_text("Whether this was done is not known").wait_for()
    assert not [said for said in walk.said if "Refused" in said or "could not be reached" in said]
    walk.said.clear()  # The browser tells of each connection that was lost.


@pytest.mark.parametrize(("agent", "question", "why"), [
    ("shop", "please pay Ada", "The run ended before anybody decided."),
    ("manager", "have the shop pay", "The run ended while the run that works on it waited."),
])  # fmt: skip
def test_a_call_does_not_wait_for_anybody_once_its_run_was_cancelled(
    walk: Any, agent: str, question: str, why: str
) -> None:
    walk.ask(agent, question)
    walk.status("waiting")
    walk.page.locator(".approval").wait_for()
    walk.page.get_by_role("button", name="Cancel").click()
    walk.status("cancelled")
    walk.sees(why)
    walk.page.reload()
    walk.sees(why)
    assert walk.page.get_by_text("A person has to decide").count() == 0
    assert walk.page.locator(".state.waiting").count() == 0


def test_a_text_that_is_slow_to_read_does_not_hold_the_page(walk: Any) -> None:
    walk.ask("shop", "be tiresome")
    walk.status("finished")
    walk.sees("_a_a_a_a")
    assert walk.page.evaluate("() => document.querySelectorAll('.said-by-model').length") == 1
