"""Texts: how many tokens a text takes at most, whatever kind of text it is, reckoned from its bytes. Pure."""

UNIT = 32
"""What a token weighs in `text_weight`."""

_HALF = UNIT // 2

SLACK = 4
"""What a short text may have in tokens above what it weighs: one rare word tells more of it than of a long one."""

LIKELY = 0.8
"""What is likely of an estimate, which is on the high side, as long as nothing was reported."""

_WEIGHTS = {
    b"etaoinsr": 6,
    b"hldcu": 12,
    b"mfpgybwvkjqxz": 29,
    b"ETAOINSRHLDCUMFPGYBWVKJQXZ": 24,
    b"0123456789": 36,
    b" ": 15,
    b"\t": 24,
    b"\r\n": 30,
    b".,'-": 23,
    b'"():_/=': 27,
    b"!#$%&*+;<>?@[\\]^`{|}~": 32,
    bytes([*range(9), 11, 12, *range(14, 32), 127]): 32,
    bytes(range(0xC2, 0xCC)): 40,
    b"\xcc\xcd": 76,
    b"\xd0\xd1": 24,
    bytes([0xCE, 0xCF, *range(0xD2, 0xE0)]): 46,
    b"\xe0\xe1": 98,
    b"\xe2": 52,
    b"\xe3": 32,
    bytes(range(0xE4, 0xEA)): 54,
    bytes(range(0xEA, 0xEE)): 42,
    b"\xee\xef": 64,
    bytes(range(0xF0, 0xF5)): 200,
}
"""What each byte of UTF-8 weighs; of a character that is no ASCII, the first one stands for all."""

_WEIGHT = bytes(next((weight for many, weight in _WEIGHTS.items() if byte in many), 0) for byte in range(256))
_KIND = bytes(
    ord("0" if b"0" <= byte <= b"9" else "a" if byte.isalpha() else " " if byte == b" " else ".")
    for byte in (bytes([code]) for code in range(256))
)


def estimate_text(text: str) -> int:
    """Tokens in `text`, on the high side for every kind of text."""
    return text_weight(text) // UNIT + SLACK if text else 0


def text_weight(text: str) -> int:
    """What `text` weighs, in 1/`UNIT` of a token: letters that make up common words little, figures a token each.

    A letter after a digit begins a token, as in a UUID, and a space after one is a token of its own; many spaces in a
    row make few. The weights are the least, to a few per cent, that are not too low for any of a hundred kinds of text
    in six vocabularies: docs/costs.md says which.
    """
    # A pass over the bytes costs a few nanoseconds each: what is new is weighed in every step, and may be long.
    data = text.encode("utf-8", "surrogatepass").replace(b"    ", b" ")
    kinds = data.translate(_KIND)
    return sum(data.translate(_WEIGHT)) + UNIT * kinds.count(b"0a") + _HALF * kinds.count(b"0 ")
