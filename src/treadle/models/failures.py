"""Failures: which typed error a provider's HTTP status, headers and words mean.

Pure, and shared by the dialects: each finds the code and the words in its own error body and hands them to `error_for`.
Providers agree on statuses but not on codes, so a request that is too long or was filtered is told by its code where
there is one and by its words otherwise. The errors themselves are in `treadle.models.errors`, how long to wait is in
`treadle.models.retry_after`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from treadle.kernel.messages import Json
from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ContentFiltered,
    ContextOverflow,
    ModelError,
    ModelTimeout,
    Overloaded,
    ProtocolError,
    QuotaExceeded,
    RateLimited,
)
from treadle.models.retry_after import retry_after

OVERFLOW: Final = re.compile(
    r"context_length|context_window|exceed_context_size|request_too_large|max_tokens_per_request|context overflow"
    r"|prompt(?: is|:)? too long|input (?:is |length )?too long|too many (?:input |prompt )?tokens"
    r"|(?:maximum|max|model's|available|allowed) context (?:length|window|size)|exceed(?:s|ed)? (?:the )?context"
    r"|(?:reduce|shorten) the length|tokens must be reduced|maximum prompt length|prompt exceeds max length"
    r"|token count.{0,60}exceeds|exceed(?:s|ed)? (?:the )?(?:model'?s? )?(?:maximum )?(?:number of tokens|token limit)"
    r"|request too large|too large for model|context (?:length|window|size) (?:is |was )?exceeded"
    r"|greater than the context length|context (?:the )?overflows|range of input length|tokens \+ `?max_new_tokens"
    r"|longer than the maximum model length|n_keep \(\d+\) >= n_ctx|must have less than \d+ tokens"
    r"|context window exceeds|token count is \d+ but",
    re.IGNORECASE,
)
FILTERED: Final = re.compile(
    r"content_filter|content_policy|responsibleaipolicy|prohibited_content|moderation_blocked|safety_error"
    r"|content management policy|content filter|content policy|(?:input|prompt|content|request) was (?:flagged|rejected"
    r" (?:as a result of|by) (?:our|the) safety)|rejected by (?:our|the) safety system|requires moderation"
    r"|blocked by (?:our |the )?(?:content|safety|usage)",
    re.IGNORECASE,
)
# What is over until somebody pays, or a month has passed. Google says of a limit by the minute "You exceeded your
# current quota" as OpenAI says of this, so that words about a quota tell nothing.
USED_UP: Final = re.compile(
    r"insufficient_(?:quota|balance|credits?|funds)|billing_(?:hard_limit|not_active|error)|spend_limit_reached"
    r"|credit_balance|payment_required|ServiceQuotaExceeded|Arrearage",
    re.IGNORECASE,
)
# How AWS names what is wrong with the signature of a request or with who signed it; some of it with status 400.
SIGNED: Final = re.compile(
    r"\b(?:Expired_?Token|RequestExpired|InvalidSignature|SignatureDoesNotMatch|IncompleteSignature|UnrecognizedClient"
    r"|InvalidClientTokenId|MissingAuthenticationToken)",
    re.IGNORECASE,
)
NO_MONEY: Final = re.compile(
    r"credit balance is too low|insufficient (?:account )?(?:balance|credits?|funds)|billing hard limit|out of credits"
    r"|reached your specified API usage limits|used all available credits|monthly spending limit|credits are depleted"
    r"|key limit exceeded",
    re.IGNORECASE,
)
# Without a status (an error inside a stream) the code or type of the error must tell; the first that matches counts.
KINDS: Final[tuple[tuple[re.Pattern[str], int], ...]] = (
    (FILTERED, 400),
    (re.compile(r"overloaded|unavailable|capacity", re.IGNORECASE), 529),
    (re.compile(r"rate_?limit|too_many_requests|quota|resource_exhausted|throttl", re.IGNORECASE), 429),
    (re.compile(r"authenti|api_key|permission|unauthori[sz]ed|forbidden|access_?denied", re.IGNORECASE), 401),
    (re.compile(r"timeout|deadline", re.IGNORECASE), 408),
    (
        re.compile(
            r"invalid|validation|bad_request|not_found|unsupported|tool_use_failed|failed_precondition", re.IGNORECASE
        ),
        400,
    ),
)
# What keys look like, and what providers show of them when they are wrong ("sk-ab***yz").
KEY: Final = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|csk|nvapi|hf|key)[-_][\w.-]{12,}|\bAIza[\w-]{20,}|\bya29\.[\w.-]{8,}|\bGOCSPX-[\w-]{8,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*+)?"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*+(?:-----END [A-Z ]{0,40}-----)?"
    r"|(?>(?:(?<![\w-])[\w-]++)?)\*{3,}+[\w-]*+|(?<=Bearer )\S+"
)
TITLES: Final = tuple(
    (re.compile(rf"<{tag}\b", re.IGNORECASE), re.compile(rf"</{tag}\b", re.IGNORECASE)) for tag in ("title", "h1")
)
NO_TEXT: Final = re.compile(
    r"<(?:script\b(?>(?:[^<]|<(?!/script))*)(?:</script\b[^<>]*+>?)?|style\b(?>(?:[^<]|<(?!/style))*)(?:</style\b[^<>]*+>?)?|[^<>]*+>)",
    re.IGNORECASE,
)
# A shorter key is a placeholder ("none", "test") or nearly one, and its letters stand in other words too.
SHORT_KEY: Final = 8
NAMED: Final = r"(\b(?:key|token|bearer|secret|password|authori[sz]ation)\b[^\n]{0,40}?(?<!\w))"
SHOWN: Final = 1000
CODES: Final = ("code", "type", "status", "status_code", "error_code")


def error_for(
    provider: str, words: str, *, status: int | None = None, code: str = "", headers: Mapping[str, str] | None = None
) -> ModelError:
    """The typed error for what a provider said.

    Args:
        provider: who said it, for the message.
        words: the provider's own message.
        status: the HTTP status; None for an error inside a stream, whose `code` then decides.
        code: the error's code and type as the provider names them, joined by a space.
        headers: the response's headers, names in lower case.
    """
    headers = headers or {}
    if status is None or status < 400:
        status = _number_in(code) or next((number for pattern, number in KINDS if pattern.search(code)), 500)
        shown = f"{provider} failed in its reply"
    else:
        shown = f"{provider} answered HTTP {status}"
    words = redact(words.strip())[:SHOWN]
    kind = error_type(status, code, words)
    found = kind(
        f"{shown}: {words or code or 'it gave no reason'}",
        retry_after=retry_after(headers, words, limited=kind is RateLimited) if kind.retryable else None,
        status=status,
        request_id=request_id(headers),
    )
    # Who answers has not gone on with it.
    found.gave_up = False
    # Not of any standard, but providers say so, and their own clients obey.
    if (again := headers.get("x-should-retry")) in ("true", "false"):
        vars(found)["retryable"] = again == "true"
    return found


def _number_in(code: str) -> int | None:
    """The HTTP status that a code is, as a number or as text."""
    numbers = [int(word) for word in code.split() if word.isascii() and word.isdigit() and len(word) == 3]
    return next((number for number in numbers if 400 <= number < 600), None)


def error_type(status: int, code: str, words: str) -> type[ModelError]:
    """The class of error for an HTTP `status` of 400 or more, the provider's `code` and `words`."""
    said = f"{code} {words}"
    # Bedrock says "Too many tokens, please wait" of the tokens in a minute.
    throttled = status == 429 and "throttl" in code.lower()
    if (
        not throttled
        and status in (400, 403, 413, 422, 424, 429, 500)
        and (OVERFLOW.search(code) or OVERFLOW.search(words))
    ):
        return ContextOverflow
    if status in (400, 403, 422) and FILTERED.search(said):
        return ContentFiltered
    if status == 402 or USED_UP.search(code) or (status in (400, 403, 429) and NO_MONEY.search(words)):
        return QuotaExceeded
    if status in (401, 403) or (
        status == 400
        and (SIGNED.search(code) or re.search(r"api[_ ]key[_ ](?:not valid|invalid)", said, re.IGNORECASE))
    ):
        return AuthenticationFailed
    if status == 413:
        return ContextOverflow
    if status == 429:
        return RateLimited
    if status == 408:
        return ModelTimeout
    # 409 is a lock that was not free, 424 Bedrock's word for a model that failed, 425 "too early", 498 Groq's flex
    # capacity, 499 what Google cancelled of its own accord; 501 is the one 5xx that will not pass.
    if status in (409, 424, 425, 498, 499) or (status >= 500 and status != 501):
        return Overloaded
    return BadRequest


def redact(words: str, key: str = "") -> str:
    """`words` without `key` and without what looks like a key.

    A key of fewer than eight characters is taken out only as a word of its own, soon after a word such as "key".
    """
    if len(key) >= SHORT_KEY:
        words = re.sub(re.escape(key), "[key]", words, flags=re.IGNORECASE)
    elif key:
        words = re.sub(rf"{NAMED}{re.escape(key)}(?!\w)", r"\1[key]", words, flags=re.IGNORECASE)
    return KEY.sub("[key]", words)


def request_id(headers: Mapping[str, str]) -> str:
    """The provider's name for the exchange, from its headers; empty if they have none."""
    for name in ("request-id", "x-request-id", "x-amzn-requestid", "apim-request-id"):
        if value := headers.get(name):
            return value
    return ""


def page_title(page: str) -> str:
    """What an HTML page says in its title or first heading; else the beginning of its text."""
    for opened, closed in TITLES:
        start = opened.search(page)
        inner = -1 if start is None else page.find(">", start.end())
        end = None if inner < 0 else closed.search(page, inner)
        if end is not None and (title := " ".join(page[inner + 1 : end.start()].split())):
            return title[:200]
    return " ".join(NO_TEXT.sub(" ", page).split())[:200]


def error_for_page(provider: str, status: int, headers: Mapping[str, str], page: str) -> ModelError:
    """The typed error for a body that is no JSON: an HTML page of a proxy, or plain text."""
    if page.lstrip()[:1] != "<":
        return error_for(provider, page, status=status, headers=headers)
    title = page_title(page)
    if status < 400:
        return ProtocolError(
            f"{provider} answered HTTP {status} with an HTML page ({title}), not JSON; is the base URL right?",
            status=status,
        )
    # A server that is down says so at the right address too.
    doubt = "" if status >= 500 or status == 429 else "; is the base URL right?"
    return error_for(provider, f"an HTML page ({title}){doubt}", status=status, headers=headers)


def error_for_redirect(server: str, status: int, headers: Mapping[str, str]) -> BadRequest:
    """The error for an HTTP status of 300 to 399: nobody follows it."""
    to = headers.get("location", "nowhere").partition("?")[0]
    return BadRequest(
        f"{server} answered HTTP {status}, a redirect to {to}; redirects are not followed, "
        f"for they would hand the key on: give the right base_url",
        status=status,
    )


def text_of_error(error: Any) -> str:
    """The words in an error object, wherever providers put them; its JSON-like text if there are none."""
    if isinstance(error, dict):
        for name in ("message", "detail", "error", "msg"):
            if value := error.get(name):
                return text_of_error(value)
        return str(error)
    if isinstance(error, list):
        return "; ".join(text_of_error(item) for item in error)
    return str(error)


def unnamed_error(data: Json) -> Any:
    """The error in an event that does not say what it is: in its own field, or all of it, if it says anything.

    Raises:
        KeyError: it says nothing.
    """
    said = any(isinstance(data.get(name), str) for name in ("message", "detail", "msg"))
    return data if said and not data.get("error") else data["error"]


def codes_of(error: Any) -> str:
    """The codes of an error object, numbers too, joined by a space; empty for anything else."""
    if not isinstance(error, dict):
        return ""
    details = error.get("details")
    inside = [details] if isinstance(details, dict) else []
    return " ".join([str(one[name]) for one in (error, *inside) for name in CODES if one.get(name)])
