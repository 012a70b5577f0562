"""Scalar: a text as it is written in a declaration, so that YAML takes it for nothing else. Pure."""

import json
import re


def scalar(text: str) -> str:
    """The text as YAML: plain where nothing could be taken for something else, else in double quotes as JSON."""
    plain = re.fullmatch(r"[A-Za-z_][\w./() -]*", text, re.ASCII) and text == text.strip()
    words = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
    if (plain and text.lower() not in words) or re.fullmatch(r"[0-9]{1,2}", text):
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(sign: str) -> str:
    """A sign in double quotes, as JSON writes it; for one of more than 16 bits that is a pair, which YAML has not."""
    return json.dumps(sign)[1:-1] if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}"
