"""Which typed error providers' own words mean, and how long they ask to wait."""

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ContentFiltered,
    ContextOverflow,
    ModelError,
    Overloaded,
    QuotaExceeded,
    RateLimited,
)
from treadle.models.failures import error_for, error_for_page, redact
from treadle.models.retry_after import retry_after, seconds_of


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (
            400,
            "context_length_exceeded",
            "This model's maximum context length is 8192 tokens. However, you requested 9",
        ),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        (413, "request_too_large", "Request exceeds the maximum size"),
        (413, "rate_limit_exceeded", "Request too large for model `x` on tokens per minute (TPM): Limit 6000"),
        (429, "tokens", "Request too large for gpt-4o. The input or output tokens must be reduced in order to run"),
        (400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed"),
        (400, "exceed_context_size_error", "the request exceeds the available context size, try increasing it"),
        (422, "", "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
        (400, "", "This endpoint's maximum context length is 4096 tokens. Please reduce the length of either one"),
        (400, "", "Your request exceeded model token limit: 8192"),
        (
            400,
            "",
            "The number of tokens to keep from the initial prompt is greater than the context length (n_ctx: 4096)",
        ),
        (400, "", "Trying to keep the first 16130 tokens when context the overflows. Provide a shorter input."),
        (400, "invalid_parameter_error", "Range of input length should be [1, 129024]"),
        (422, "", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"),
        (None, "context_length_exceeded", "Your input exceeds the context window of this model."),
        (None, "", "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"),
        (400, "BadRequestError", "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
        (422, "validation", "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000"),
        (400, "bad_request_error", "invalid params, context window exceeds limit (2013)"),
        (400, "INVALID_ARGUMENT", "the input token count is 1100000 but model only supports up to 1048576."),
    ],
)
def test_a_request_that_is_too_long_is_told_by_its_code_or_its_words(status: int | None, code: str, words: str) -> None:
    assert type(error_for("here", words, status=status, code=code)) is ContextOverflow


@pytest.mark.parametrize(
    ("status", "code", "words", "kind"),
    [
        (400, "content_filter", "The response was filtered due to Azure's content management policy", ContentFiltered),
        (403, "403", "Your chosen model requires moderation and your input was flagged for violence", ContentFiltered),
        (400, "", "Your request was rejected as a result of our safety system.", ContentFiltered),
        (None, "content_filter", "no", ContentFiltered),
        (400, "", "API key not valid. Please pass a valid API key.", AuthenticationFailed),
        (403, "", "You are not allowed to sample from this model", AuthenticationFailed),
        (402, "", "Insufficient Balance", QuotaExceeded),
        (403, "insufficient_quota", "pay", QuotaExceeded),
        (
            400,
            "invalid_request_error",
            "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
            QuotaExceeded,
        ),
        (403, "403", "Key limit exceeded (monthly limit). Manage it in your settings", QuotaExceeded),
        (
            429,
            "",
            "Your team has either used all available credits or reached its monthly spending limit",
            QuotaExceeded,
        ),
        (400, "Arrearage", "Access denied, please make sure your account is in good standing.", QuotaExceeded),
        (429, "rate_limit_error", "This request would exceed your account's rate limit.", RateLimited),
        (501, "", "This server does not support tools", BadRequest),
        (409, "", "Conflict", Overloaded),
        (498, "", "capacity exceeded", Overloaded),
        (429, "insufficient_quota", "You exceeded your current quota", QuotaExceeded),
        (None, "rate_limit_error", "slow", RateLimited),
        (None, "overloaded_error", "busy", Overloaded),
        (None, "authentication_error", "who are you", AuthenticationFailed),
        (None, "not_found_error", "no such model", BadRequest),
        (None, "", "it broke", Overloaded),
        (400, "invalid_request_error", "max_tokens: 200000 > 8192, the maximum number of output tokens", BadRequest),
        (400, "", "messages: text content blocks must be non-empty", BadRequest),
    ],
)
def test_each_refusal_means_one_error(status: int | None, code: str, words: str, kind: type[ModelError]) -> None:
    error = error_for("here", words, status=status, code=code)
    assert type(error) is kind
    assert words in str(error)


def test_a_page_is_told_by_its_title_and_plain_text_by_itself() -> None:
    page = "<!DOCTYPE html><html><head><title>\n 502 Bad\n Gateway</title></head><body><p>nginx</p></body></html>"
    assert "an HTML page (502 Bad Gateway)" in str(error_for_page("here", 502, {}, page))
    assert "an HTML page (nothing here)" in str(error_for_page("here", 404, {}, "<p>nothing <b>here</b></p>"))
    assert str(error_for_page("here", 503, {}, "no healthy upstream")) == "here answered HTTP 503: no healthy upstream"


@pytest.mark.parametrize(
    "shown",
    [
        "sk-proj-0123456789abcdef",
        "sk-ab***********yz",
        "gsk_0123456789abcdef",
        "Bearer abc.def",
        "AIzaSyA0123456789abcdefghij",
    ],
)
def test_what_looks_like_a_key_is_never_repeated(shown: str) -> None:
    error = error_for("here", f"Incorrect API key provided: {shown}. See the site.", status=401)
    assert shown.removeprefix("Bearer ") not in str(error)
    assert "Incorrect API key provided" in str(error)


@given(st.text(min_size=8), st.text())
def test_the_key_in_use_is_taken_out_of_any_words(key: str, words: str) -> None:
    assert key not in redact(f"{words}{key}{words}", key).replace("[key]", "")


@pytest.mark.parametrize(
    ("key", "words", "told"),
    [
        ("a", "cannot load a model: a file is damaged", "cannot load a model: a file is damaged"),
        ("none", "there is none such, nonetheless", "there is none such, nonetheless"),
        ("test", "cannot connect to http://test/v1", "cannot connect to http://test/v1"),
        ("none", "Incorrect API key provided: none.", "Incorrect API key provided: [key]."),
        ("hunter2", "the token 'hunter2' has expired", "the token '[key]' has expired"),
        ("x", "Bearer x is unknown", "Bearer [key] is unknown"),
        ("(", "a key of ( is no key", "a key of [key] is no key"),
    ],
)
def test_a_very_short_key_does_not_mangle_the_words_around_it(key: str, words: str, told: str) -> None:
    """Regression: api_key="none" or "a" was replaced wherever its letters stood."""
    assert redact(words, key) == told


@pytest.mark.parametrize(
    ("headers", "words", "wait"),
    [
        ({}, "", None),
        ({"retry-after": "2"}, "", 2.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "-3"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": formatdate(0, usegmt=True)}, "", None),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, "", 360.0),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "20ms",
                "x-ratelimit-remaining-tokens": "10",
                "x-ratelimit-reset-tokens": "1h2m3s",
            },
            "",
            0.02,
        ),
        ({"retry-after": "1", "x-ratelimit-reset-tokens": "6m0s"}, "", 1.0),
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}, "Please try again in 7.66s.", 7.66),
        (
            {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"},
            "Please try again in 7.66s.",
            360.0,
        ),
        ({}, "Rate limit reached. Please try again in 2m59.56s. Visit the site.", 179.56),
        ({}, "Please retry after 12 seconds.", 12.0),
        ({}, "Please try again in a while.", None),
    ],
)
def test_how_long_to_wait_is_read_from_headers_then_words(
    headers: dict[str, str], words: str, wait: float | None
) -> None:
    assert retry_after(headers, words) == (None if wait is None else pytest.approx(wait))


GROQ = {
    "x-ratelimit-limit-requests": "14400",
    "x-ratelimit-remaining-requests": "14370",
    "x-ratelimit-reset-requests": "2m59.56s",
    "x-ratelimit-remaining-tokens": "17997",
    "x-ratelimit-reset-tokens": "7.66s",
}


@pytest.mark.parametrize(
    ("status", "more", "wait"),
    [
        (503, {}, None),
        (500, {}, None),
        (408, {}, None),
        (503, {"retry-after": "3"}, 3.0),
        (503, {"x-ratelimit-remaining-tokens": "0"}, 7.66),
        (429, {}, 179.56),
        (429, {"x-ratelimit-remaining-tokens": "0"}, 7.66),
    ],
)
def test_a_limit_that_is_not_used_up_is_not_waited_for_where_none_is_wrong(
    status: int, more: dict[str, str], wait: float | None
) -> None:
    """Groq and others say with each answer how far each limit is used, those of a day among them."""
    found = error_for("groq", "busy", status=status, headers=GROQ | more)
    assert found.retry_after == (None if wait is None else pytest.approx(wait))


def test_a_point_in_time_is_a_wait_until_then() -> None:
    soon = time.time() + 90
    points = [formatdate(soon, usegmt=True), str(int(soon)), str(int(soon * 1000))]
    points.append(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(soon)))
    for point in points:
        wait = seconds_of(point)
        assert wait is not None
        assert 80 < wait < 91


@given(st.text())
def test_no_header_breaks_the_reading_of_it(value: str) -> None:
    wait = seconds_of(value)
    assert wait is None or wait >= 0
