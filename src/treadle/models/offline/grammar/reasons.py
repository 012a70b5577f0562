"""The reason behind an order: "Cancel order 7 because it is late" is the order to cancel it, whatever the reason.

It says why, and changes nothing of what is to be done, where it holds no word that could. Read by `question`.
"""

import re

from treadle.models.offline.grammar.english import word_set

_ORDER = re.compile(
    r"^\W*(?:please |kindly )?(?:(?P<asks>(?:can|could|would|will) you )(?:please )?|"
    r"(?:i|we) (?:want|need|would like) (?:you )?to |(?:i|we)['’]d like (?:you )?to )?(?P<verb>[a-z]+)\s",
    re.IGNORECASE,
)
_BECAUSE = re.compile(r",? because (?=[a-z])", re.IGNORECASE)
# What asks or tells, and is no order.
_NO_ORDERS = word_set(
    "what which who whose whom when where why how is are was were do does did has have had can could will would should "
    "shall may might must the a an i we you he she it they this that these those there my our your his her its their "
    "not no never don dont if unless only maybe perhaps"
)
# What could be a condition, a contrast, an order of its own, or say when the order is to be carried out.
_TURNING = word_set(
    "but only if unless until till when whenever once while before after except instead rather without otherwise else "
    "then also and or no wait actually sorry mean meant please tomorrow tonight later soon every each twice again "
    "daily weekly monthly"
)


def without_reason(text: str) -> tuple[str, str]:
    """An order without the reason behind it, and the reason; the text as it is, and nothing, where it has none.

    Args:
        text: a part of a question.
    """
    order, because = _ORDER.match(text), _BECAUSE.search(text)
    if order is None or because is None or order["verb"].lower() in _NO_ORDERS:
        return text, ""
    reason = text[because.end() :].strip()
    words = re.findall(r"[a-z]+", reason.lower())
    strange = re.search(r"[^\w\s'’.!?-]|\d", reason) is not None or _TURNING & {*words}
    # A quotation mark before it may open what is to be said.
    quoted = re.search(r"[\"“”«»`]", text[: because.start()]) is not None
    asks = text.rstrip().endswith("?") and not order["asks"]
    if strange or quoted or len(words) < 2 or asks:
        return text, ""
    return text[: because.start()], reason.removeprefix("of ").rstrip(" .!?")
