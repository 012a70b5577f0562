"""What is refused before any route is asked, and where there is none, has the form that the protocol's clients show."""

import front_agents
import httpx2
import openai
import pytest

TOKEN = "a token that nobody guesses"
MISSING = "the token is missing or wrong. Send it as Authorization: Bearer TOKEN."
ASKED = [
    ("GET", "/v1/models", None),
    ("POST", "/ai-sdk/shop", {}),
    ("GET", "/ai-sdk/shop/chat/stream", None),
    ("GET", "/ai-sdk/shop/chat/messages", None),
    ("POST", "/ag-ui/shop", {}),
    ("POST", "/v1/chat/completions", {}),
    ("POST", "/v1/responses", {}),
]


@pytest.fixture(scope="module")
def guarded():
    with front_agents.served(token=TOKEN) as address:
        yield address


def words(answer):
    """What a client of the protocol shows of an answer that is no success."""
    path = answer.url.path
    if path.startswith("/ai-sdk/"):
        # The AI SDK's message is the whole body.
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        return answer.text
    error = answer.json()["error"]
    if path.startswith("/v1/"):
        assert set(error) == {"message", "type", "param", "code"}
        return error["message"]
    assert set(error) == {"kind", "message", "advice"}
    return f"{error['message']}. {error['advice']}" if error["advice"] else error["message"]


@pytest.mark.parametrize(("method", "path", "body"), ASKED)
def test_who_is_not_known_is_told_so_as_the_client_shows_it(guarded, method, path, body):
    answer = httpx2.request(method, guarded + path, json=body)
    assert (answer.status_code, answer.headers["www-authenticate"], words(answer)) == (401, "Bearer", MISSING)


@pytest.mark.parametrize(("method", "path", "body"), ASKED)
def test_another_host_and_another_site_are_refused_as_the_client_shows_it(guarded, method, path, body):
    told = httpx2.request(method, guarded + path, json=body, headers={"host": "a.stranger"})
    assert (told.status_code, "this server is not called 'a.stranger'" in words(told)) == (421, True)
    told = httpx2.request(method, guarded + path, json=body, headers={"origin": "https://a.stranger"})
    assert (told.status_code, "may not use this server" in words(told)) == (403, True)


@pytest.mark.parametrize("path", ["/ai-sdk/shop", "/ag-ui/shop", "/v1/chat/completions", "/v1/models/shop"])
def test_a_method_and_an_address_that_are_not_there_are_told_as_the_client_shows_it(guarded, path):
    known = {"authorization": f"Bearer {TOKEN}"}
    wrong, nowhere = httpx2.patch(guarded + path, headers=known), httpx2.get(f"{guarded}{path}/no/such", headers=known)
    takes = "GET" if "models" in path else "POST"
    assert (wrong.status_code, words(wrong)) == (405, f"PATCH is not taken here. Use {takes}.")
    assert (nowhere.status_code, bool(words(nowhere))) == (404, True)


def test_openais_client_says_what_is_wrong(guarded):
    with (
        openai.OpenAI(base_url=f"{guarded}/v1", api_key="another key", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError) as caught,
    ):
        client.responses.create(model="shop", input="hello")
    assert (caught.value.status_code, caught.value.code, caught.value.type) == (
        401, "unauthorised", "authentication_error",
    )  # fmt: skip
    assert MISSING in str(caught.value)
    with openai.OpenAI(base_url=f"{guarded}/v1", api_key=TOKEN, max_retries=0) as client:
        assert [one.id for one in client.models.list()] == ["shop", "typed"]
