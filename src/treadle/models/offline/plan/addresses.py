"""Where a message goes: parameters that take an email address, and tools that tell those of people.

A name is no address: whom a message is for is looked up, or asked for. Asked by `refusals`, `candidates` and `choice`.
"""

import re

from treadle.models.offline.grammar.words import stem
from treadle.models.offline.plan.toolbox import KnownTool, Param

_MAIL = stem("email")
_RECIPIENT = stem("recipient")
_ADDRESS = stem("address")
_ADDRESSES = ((_MAIL,), (_MAIL, _ADDRESS))
_TOLD = re.compile(r"\be-?mail address(?:es)?\b|\b(?:an?|the) (?:\S+ )?e-?mail of\b", re.IGNORECASE)
_TO_ADDRESS = re.compile(r"\bto (?:an?|the|some|one) (?:e-?mail |recipient's )?address\b", re.IGNORECASE)


def is_address(stems: tuple[str, ...]) -> bool:
    """Whether a field with a name of these stems is an email address."""
    return stems in _ADDRESSES


def receives(param: Param) -> bool:
    """Whether a parameter takes whom or what address a message goes to."""
    return param.shape == "text" and (is_address(param.stems) or _RECIPIENT in param.nouns)


def takes_address(tool: KnownTool, param: Param) -> bool:
    """Whether a parameter takes an email address, by its name or by what is said of it."""
    said = _TOLD.search(param.description) or _TO_ADDRESS.search(tool.spec.description)
    # "Address of the recipient", of what sends a mail.
    mailed = {_MAIL, stem("mail")} & set(tool.name_stems) and re.search(r"\baddress", param.description, re.IGNORECASE)
    return receives(param) and (is_address(param.stems) or said is not None or bool(mailed))


def tells_address(tool: KnownTool) -> bool:
    """Whether a tool tells somebody's email address."""
    asks = any(receives(param) for param in tool.params)
    told = any(is_address(output.stems) for output in tool.outputs) or _TOLD.search(tool.spec.description) is not None
    return told and not asks and tool.change is None and len(tool.required) == 1
