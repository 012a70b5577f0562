"""What recorded replies cost: as the genai-prices package reckons it by itself, or else by a rule that has a name.

The package reads the body with extractors of its own and prices it with its own calculation; treadle's codecs, `Usage`
and `Price` have no part in that. Where the two differ, a rule below says why, and by how much: it prices the reply
again without treadle. What no rule explains fails.
"""

import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import genai_prices
import pytest
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, Provider

from treadle.models import AnthropicModel, OpenAIChatModel, OpenAIResponsesModel
from treadle.models.codec import DONE
from treadle.models.errors import ModelError
from treadle.models.http_model import HttpModel
from treadle.models.port import ModelReply

FILES = ("anthropic_messages", "openai_chat", "openai_responses")
FLAVORS = {"anthropic_messages": "default", "openai_chat": "chat", "openai_responses": "responses"}
Body = dict[str, Any]


class Bill:
    """One reply's bill, reckoned without treadle."""

    def __init__(self, file: str, row: dict[str, Any], body: Body) -> None:
        self.file, self.body, self.counts = file, body, body.get("usage") or {}
        self.provider: Provider | None = None
        self.model: ModelInfo | None = None
        self.tokens: genai_prices.Usage | None = None
        self.cost: Decimal | None = None
        table = get_snapshot()
        try:
            self.provider = table.find_provider(None, None, f"https://{row['host']}")
        except LookupError:
            return
        self.model = self.provider.find_model(row["request"]["model"], all_providers=table.providers)
        known = {extractor.api_flavor for extractor in self.provider.extractors or ()}
        flavor = FLAVORS[file] if FLAVORS[file] in known else "default"
        if self.model is not None and flavor in known:
            self.tokens = self.provider.extract_usage(body, api_flavor=flavor)[1]
            self.price()

    def price(self) -> None:
        """The package's own price of the tokens."""
        assert self.model is not None
        assert self.provider is not None
        self.cost = self.model.calc_price(self.tokens, self.provider).total_price


def no_row(bill: Bill) -> bool:
    """Nobody has a price: the server, or the model there, is not in the table."""
    return bill.model is None


def a_row_without_prices(bill: Bill) -> bool:
    """The table has the model and no price of its tokens: unknown, where the package says that it is free."""
    if bill.model is None or any(bill.model.calc_price(tokens, bill.provider).total_price for tokens in MANY):
        return False
    bill.cost = None
    return True


def no_extractor(bill: Bill) -> bool:
    """The package cannot read this dialect of this server; its tokens are those that the body says."""
    if bill.model is None or bill.tokens is not None:
        return False
    counts = bill.counts
    bill.tokens = genai_prices.Usage(
        input_tokens=counts["input_tokens"],
        output_tokens=counts["output_tokens"],
        cache_read_tokens=counts["input_tokens_details"]["cached_tokens"],
    )
    bill.price()
    return True


def read_from_a_cache_under_another_name(bill: Bill) -> bool:
    """Mistral counts what was read from its cache where the package does not look."""
    if not bill.counts.get("num_cached_tokens") or bill.tokens is None or bill.tokens.cache_read_tokens:
        return False
    bill.tokens.cache_read_tokens = bill.counts["num_cached_tokens"]
    bill.price()
    return True


def thinking_beside_the_reply(bill: Bill) -> bool:
    """Gemini counts its thoughts in the total alone; they are charged as output."""
    counts = bill.counts
    if bill.file != "openai_chat" or bill.tokens is None or not counts.get("total_tokens"):
        return False
    received = counts["total_tokens"] - counts["prompt_tokens"]
    if received <= counts["completion_tokens"]:
        return False
    bill.tokens.output_tokens = received
    bill.price()
    return True


def searches_of_the_web(bill: Bill) -> bool:
    """The package reads no searches out of a response; each that was made is charged for, pages opened are not."""
    if bill.file != "openai_responses" or bill.model is None or bill.cost is None:
        return False
    calls = [item for item in bill.body["output"] if item["type"] == "web_search_call"]
    searches = sum(call["action"]["type"] == "search" for call in calls)
    if not searches:
        return False
    bill.tokens.web_searches = searches
    bill.price()
    return True


def another_model_had_a_part(bill: Bill) -> bool:
    """An advisor's tokens are not in the usage, and have that model's price: the whole is unknown."""
    if all(one["type"] == "message" for one in bill.counts.get("iterations") or ()):
        return False
    bill.cost = None
    return True


def as_openrouter_says(bill: Bill) -> bool:
    """OpenRouter says what it charged, searches, fees and the models that it fell back to included."""
    if bill.provider is None or bill.provider.id != "openrouter" or "cost" not in bill.counts:
        return False
    told = Decimal(repr(float(bill.counts["cost"])))
    if bill.counts.get("is_byok"):
        told += Decimal(repr(float(bill.counts["cost_details"]["upstream_inference_cost"])))
    same, bill.cost = bill.cost == told, told
    return not same


MANY = [genai_prices.Usage(input_tokens=1000, output_tokens=1000)]
RULES: list[Callable[[Bill], bool]] = [
    no_row,
    a_row_without_prices,
    no_extractor,
    read_from_a_cache_under_another_name,
    thinking_beside_the_reply,
    searches_of_the_web,
    another_model_had_a_part,
    as_openrouter_says,
]


def model_of(file: str, row: dict[str, Any]) -> HttpModel:
    """The model that the request was for, at the server that answered."""
    name, base = row["request"]["model"], f"https://{row['host']}"
    if file == "anthropic_messages":
        return AnthropicModel(name, base_url=base, api_key="k")
    if file == "openai_responses":
        return OpenAIResponsesModel(name, base_url=f"{base}/v1", api_key="k")
    provider = "openrouter" if row["host"] == "openrouter.ai" else "local"
    return OpenAIChatModel(name, provider=provider, base_url=f"{base}/v1", api_key="k")


def reply_of(model: HttpModel, events: list[Body] | Body) -> ModelReply:
    if isinstance(events, dict):
        [*_, reply] = model.codec.decode_body(events)
        assert isinstance(reply, ModelReply)
        return reply
    decoder = model.codec.decoder()
    for event in [*events, DONE]:
        decoder.feed(event)
    return decoder.close()


def whole_of(file: str, events: list[Body]) -> Body:
    """The body that a stream adds up to, as far as its bill goes."""
    if file == "openai_responses":
        return next(
            event["response"] for event in events if event["type"] in ("response.completed", "response.incomplete")
        )
    body: Body = {"usage": {}}
    for event in events:
        said = event.get("message") or event
        body |= {key: said[key] for key in ("model", "service_tier") if said.get(key)}
        counts = said.get("usage") or (said.get("x_groq") or {}).get("usage") or {}
        body["usage"] |= {key: value for key, value in counts.items() if value is not None}
    return body


@pytest.mark.parametrize("file", FILES)
def test_every_recorded_reply_costs_what_the_table_says_or_a_rule_explains(file, recordings, read_stream):
    seen: Counter[str] = Counter()
    for row in recordings(file):
        if row["status"] != 200:
            continue
        model = model_of(file, row)
        whole = row["response"]
        if row["stream"]:
            whole = [json.loads(data) for data in read_stream(whole, None) if data != b"[DONE]"]
        try:
            reply = reply_of(model, whole)
        except ModelError:
            seen["no reply"] += 1
            continue
        body = whole_of(file, whole) if isinstance(whole, list) else whole
        assert (reply.usage is None) == (not body.get("usage")), row["file"]
        if reply.usage is None:
            seen["no usage"] += 1
            continue
        bill = Bill(file, row, body)
        rules = [rule.__name__ for rule in RULES if rule(bill)]
        ours = model.cost(reply.usage) if reply.cost is None else reply.cost
        assert ours == bill.cost, (row["file"], row["host"], row["request"]["model"], rules, body["usage"])
        seen.update(rules or ["as the package has it"])
    assert seen["as the package has it"] > sum(seen.values()) / 2
    used = {name for name in seen if name in {rule.__name__ for rule in RULES}}
    assert used >= EXPECTED[file], "a rule that explains nothing any more is to be taken out"


EXPECTED = {
    "anthropic_messages": {"another_model_had_a_part"},
    "openai_chat": {
        "no_row",
        "a_row_without_prices",
        "read_from_a_cache_under_another_name",
        "thinking_beside_the_reply",
        "as_openrouter_says",
    },
    "openai_responses": {"no_row", "no_extractor", "searches_of_the_web"},
}
