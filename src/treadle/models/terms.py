"""Terms: on what terms a request is billed, as far as its own settings say: the service, the cache, searches.

Pure. A limit in dollars is kept by what a call can cost at most, and that depends on what the caller asks the provider
for beside the reply, in `ModelSettings.extra`. Neighbours: `treadle.models.price`, which has the prices;
`treadle.drivers.purse.reckoning`, which reckons with the dearest.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Json, ModelSettings, Usage

USUAL: Final = frozenset(["", "auto", "default", "standard", "standard_only", "on_demand"])
"""What providers call the service that costs as usual."""

ANYWHERE: Final = frozenset(["", "global", "not_available"])
"""What Anthropic calls inference that is not held to a region."""

FALLBACK: Final = "fallback_message"
ELSEWHERE: Final = frozenset(["advisor_message", FALLBACK])
"""The services in which another model had a part, at a price of its own."""

CALLERS: Final = (
    "apply_patch",
    "bash",
    "browser_toolset",
    "computer",
    "custom",
    "function",
    "local_shell",
    "memory",
    "namespace",
    "text_editor",
)
"""How the types of tools begin that are left to the caller; any other runs at the provider, at the caller's cost."""

DECLARED: Final = ("functionDeclarations", "function_declarations")
"""Where Google has the tools that are called here, and not at the provider."""

SWITCHES: Final = (
    "web_search_options",
    "search_parameters",
    "enable_search",
    "plugins",
    "connectors",
    "mcp_servers",
    "fallbacks",
)
"""The fields that switch something on which the provider runs itself."""

LEFT: Final[Mapping[str, str]] = {
    "models": "which of its `models` answers",
    "route": "which model answers (`route`)",
    "previous_response_id": "what `previous_response_id` adds to the request",
    "conversation": "what `conversation` adds to the request",
    "prompt": "what `prompt` adds to the request",
    "cachedContent": "what `cachedContent` adds to the request",
    "cached_content": "what `cached_content` adds to the request",
}
"""What a field leaves to the provider that nobody else can reckon with."""

SEARCHING: Final = re.compile(r":online$|-search-(?:preview|api)(?![a-z])")
"""How the names of models look that search the web for each reply: OpenRouter's variant of any, OpenAI's own.

Sources: https://openrouter.ai/docs/features/web-search,
https://platform.openai.com/docs/guides/tools-web-search#limitations
"""

WORKING: Final = re.compile(r"deep-research|^(?:groq/)?compound(?![a-z])")
"""How the names of models look that search, read and run code as often as they see fit."""

OTHER_MODELS: Final = ("models", "route", "fallbacks")
"""The fields by which another model than the one that is named may answer."""


class Terms(Struct, frozen=True):
    """On what terms a request is billed.

    Attributes:
        services: the services that may give the reply, as in `Usage.service`; the usual one is always among them.
        hour: whether what is sent may be written to a cache that is kept for an hour.
        searches: the most searches of the web that the provider may make.
        endless: what is left to the provider at a cost that nothing bounds, such as "web_search"; empty if nothing.
    """

    services: tuple[str, ...] = ("",)
    hour: bool = False
    searches: int = 0
    endless: str = ""


def terms_of(model: object, settings: ModelSettings) -> Terms:
    """On what terms `model` sends a request with `settings`: as it says by `terms(settings)`, if it has that.

    Raises:
        Misuse: it says something else.
    """
    ask = getattr(model, "terms", None)
    found: object = asked_terms(settings, hour=True) if ask is None else ask(settings)
    if not isinstance(found, Terms):
        raise Misuse(f"terms(settings) of a model returns treadle.models.terms.Terms; it returned {found!r:.100}")
    return found


def named_terms(terms: Terms, model: str) -> Terms:
    """`terms` of a request to a model that is called `model`, which may be one that asks for more by its name."""
    if WORKING.search(model):
        return replace(terms, endless=terms.endless or f"what the model {model!r} does by itself")
    return replace(terms, searches=terms.searches + 1) if SEARCHING.search(model) else terms


def searched(usage: Usage, model: str) -> Usage:
    """`usage` of a reply of `model` with the search that it made of itself: it is charged, and nobody counts it."""
    return replace(usage, web_searches=1) if not usage.web_searches and SEARCHING.search(model) else usage


def asked_terms(settings: ModelSettings, hour: bool) -> Terms:
    """The terms that `settings` ask for, in the words of the providers' APIs.

    Sources: https://platform.openai.com/docs/api-reference/responses/create (service_tier, max_tool_calls) and
    https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool (max_uses).

    Args:
        settings: all of the request's.
        hour: whether a cache for an hour is asked for in another way.
    """
    extra = settings.extra
    if not extra:
        return Terms(hour=hour)
    asked = (extra.get("service_tier"), extra.get("serviceTier"), extra.get("speed"))
    services = [word for word in asked if isinstance(word, str) and word not in USUAL]
    left = [what for field, what in LEFT.items() if extra.get(field) not in (None, False, [], "")]
    searches, endless = 0, left[0] if left else ""
    for tool in _own_tools(extra):
        kind = str(tool.get("type"))
        most = tool.get("max_uses", extra.get("max_tool_calls")) if kind.startswith("web_search") else None
        if isinstance(most, int) and not isinstance(most, bool) and most >= 0:
            searches += most
        else:
            endless = endless or kind
    geo = extra.get("inference_geo")
    if isinstance(geo, str) and geo not in ANYWHERE:
        services += [served_within(word, geo) for word in ("", *services)]
    return Terms(("", *services), hour or _for_an_hour(extra), searches, endless)


def served_within(service: str, geo: str) -> str:
    """`service` where inference was held to the region `geo`, which costs more: "us", or "fast us"."""
    return service if geo in ANYWHERE or service in ELSEWHERE else f"{service} {geo}".strip()


def asks_others(settings: ModelSettings) -> bool:
    """Whether another model than the one that is named may answer a request with `settings`, at a price of its own."""
    extra = settings.extra or {}
    return any(extra.get(field) not in (None, False, [], "") for field in OTHER_MODELS)


def is_dated(name: str, model: str) -> bool:
    """Whether `name` is `model`, as it is or with a date after it."""
    return re.fullmatch(re.escape(model) + r"([-@]\d{4}-?\d{2}-?\d{2})?", name) is not None


def elsewhere(usage: Usage) -> Usage:
    """`usage` of a model that may not be the one that was named, and has no price here."""
    return replace(usage, service=usage.service if usage.service in ELSEWHERE else FALLBACK)


def _own_tools(extra: Json) -> Iterator[Json]:
    """What the provider is asked to do itself; a field that switches it on counts as a tool of that type."""
    tools = extra.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and tool.get("type") is not None:
            yield from () if str(tool["type"]).startswith(CALLERS) else (tool,)
        elif isinstance(tool, dict) and not {"name", "function"} & tool.keys():
            # Google's have a field of their name instead: {"googleSearch": {}}.
            yield from ({"type": name} for name in tool if name not in (*DECLARED, "type"))
    for field in SWITCHES:
        # An empty object switches its feature on as well.
        if extra.get(field) not in (None, False, []):
            yield {"type": field}
    if "compact" in str(extra.get("context_management")):
        yield {"type": "compaction"}


def _for_an_hour(value: Any) -> bool:
    """Whether a breakpoint for an hour is anywhere in `value`."""
    if isinstance(value, dict):
        return value.get("ttl") == "1h" or any(_for_an_hour(one) for one in value.values())
    return isinstance(value, list) and any(_for_an_hour(one) for one in value)
