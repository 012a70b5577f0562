"""What leads an order out of courtesy and is no part of it: "go ahead and", whose "and" joins nothing.

Read by `question`, before it parts what is joined.
"""

import re

# At the start alone: what is told to somebody is passed as it was written.
_GREETING = r"\s*(?:(?:please|now|ok|okay|hey|hi|hello|just|so)[\s,.!]+)*"
_KINDLY = re.compile(
    rf"^({_GREETING}(?:can|could|would|will) you) (?:please kindly|kindly please|kindly) ", re.IGNORECASE
)
_LEADS = re.compile(
    rf"^({_GREETING}(?:(?:can|could|would|will) you (?:please )?|(?:i|we) (?:want|need) you to |i['’]d like you to )?)"
    r"(?:(?:go ahead and|be so (?:kind|good) as to) )+(?=[a-z])",
    re.IGNORECASE,
)


def without_courtesy(text: str) -> str:
    """A question whose order is polite in plain words: "Would you kindly …" as "Would you please …", and of "Go ahead
    and …" what is to be done."""
    return _LEADS.sub(r"\1", _KINDLY.sub(r"\1 please ", text))
