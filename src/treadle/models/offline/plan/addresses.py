"""Where something goes: parameters that take an email address or a number, and tools that tell addresses of people.

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
_NUMBERED = frozenset(map(stem, ("phone", "telephone", "mobile", "fax", "iban")))
_NUMBER = re.compile(r"\b(?:(?:tele)?phone|mobile|fax)(?: phone)? numbers?\b|\bmobiles?\b|\bIBANs?\b", re.IGNORECASE)
_TO_NUMBER = re.compile(
    rf"\b(?:to|at|calls?|dials?|texts?) (?:an?|the|some|one) (?:{_NUMBER.pattern}|number\b)", re.IGNORECASE
)
_LED = frozenset(map(stem, ("to", "recipient", "receiver", "number", "contact", "account", "target", "destination")))
_SITE = frozenset(map(stem, ("url", "uri", "webhook")))


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


def is_no_address(tool: KnownTool, param: Param, text: str) -> bool:
    """Whether a text cannot be where a parameter says that something goes: no number of a phone or an account has only
    letters, nor has an address on the web.

    Args:
        tool: the tool that takes it.
        param: the parameter.
        text: what it would be given.
    """
    words = {*param.nouns, *param.stems}
    if words & _SITE:
        return re.search(r"[.:/]", text) is None
    numbered = words & _NUMBERED or _NUMBER.search(param.description)
    led = words & _LED and _TO_NUMBER.search(tool.spec.description)
    return bool(numbered or led) and re.search(r"\d", text) is None


def tells_address(tool: KnownTool) -> bool:
    """Whether a tool tells somebody's email address."""
    asks = any(receives(param) for param in tool.params)
    told = any(is_address(output.stems) for output in tool.outputs) or _TOLD.search(tool.spec.description) is not None
    return told and not asks and tool.change is None and len(tool.required) == 1
