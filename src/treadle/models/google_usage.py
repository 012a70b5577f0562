"""The counts of Gemini: what its `usageMetadata` reports. Pure.

Neighbours: `treadle.models.google_stream`, which reads the rest of a reply; `treadle.models.counts`.
"""

from collections.abc import Mapping
from typing import Final

from treadle.kernel.messages import Json, Usage
from treadle.models.counts import count_in, list_in, name_in, part_in, told_usage, with_total
from treadle.models.google_names import camelled
from treadle.models.terms import USUAL

SERVICES: Final[Mapping[str, str]] = {
    "ON_DEMAND_PRIORITY": "priority",
    "ON_DEMAND_FLEX": "flex",
    "ON_DEMAND_OFFPEAK": "offpeak",
    "TRAFFIC_TYPE_UNSPECIFIED": "",
    "unspecified": "",
}
"""What Vertex calls services that the Gemini API has another word for; empty for the usual one."""


def counted(counts: Json, told: Json) -> Json:
    """`counts` with what is told later of the same reply.

    The last count is the bill, and may be less than an earlier one; a 0 in place of one was left out.
    """
    known = {camelled(name): count for name, count in told.items() if count is not None}
    return counts | {name: count for name, count in known.items() if count or name not in counts}


def usage_of(counts: Json, searches: int, so_far: bool = False) -> Usage | None:
    """What a reply has taken; None if nothing of it is known. Counts that are 0 are often left out."""
    if not counts:
        return Usage(web_searches=searches, estimated=True) if searches else None
    prompt, said = count_in(counts, "promptTokenCount"), count_in(counts, "candidatesTokenCount")
    thought = part_in(counts, "thoughtsTokenCount")
    asked = None if prompt is None else prompt + part_in(counts, "toolUsePromptTokenCount")
    received = thought or None if said is None else said + thought
    if not so_far:
        asked, received = with_total(asked, received, count_in(counts, "totalTokenCount"))
    cached_sound = _of_kind(counts, "cacheTokensDetails", "AUDIO")
    service = name_in(counts, "trafficType") or name_in(counts, "serviceTier")
    parts = Usage(
        cache_read_tokens=part_in(counts, "cachedContentTokenCount"),
        reasoning_tokens=thought,
        web_searches=searches,
        audio_tokens=max(0, _of_kind(counts, "promptTokensDetails", "AUDIO") - cached_sound),
        image_tokens=_of_kind(counts, "candidatesTokensDetails", "IMAGE"),
        service="" if service.lower() in USUAL else SERVICES.get(service, service.lower()),
    )
    return told_usage(parts, asked, received)


def _of_kind(counts: Json, name: str, kind: str) -> int:
    """The tokens of one kind ("AUDIO") among those that are told by kind in the list `name`."""
    told = [one for one in list_in(counts, name) if one.get("modality") == kind]
    return sum(part_in(one, "tokenCount") or part_in(one, "token_count") for one in told)
