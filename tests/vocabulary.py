"""How many tokens texts really are, by vocabularies of providers that come in a package: nothing is fetched.

`cl100k` and `o200k` are OpenAI's and take up to three digits at once; in `voyage3`, that of Voyage, each digit is a
token, as in those of Qwen, Google and Mistral.
"""

from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any


def _counter() -> Any:
    # The package around it reads, as it is imported, all vocabularies a second time in Python: half a second.
    package = find_spec("bpe_openai")
    spec = PathFinder.find_spec("bpe_openai._bindings", package and package.submodule_search_locations)
    assert spec is not None, "bpe-openai is not installed, or has no bpe_openai/_bindings any longer"
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_bindings = _counter()
VOCABULARIES = {"cl100k": "cl100k_base", "o200k": "o200k_base", "voyage3": "voyage3_base"}


@lru_cache(maxsize=len(VOCABULARIES))
def _tokenizer(vocabulary: str) -> Any:
    # What the package shows of it refuses texts of 200,000 tokens or more.
    return _bindings.tokenizer_for_encoding(VOCABULARIES[vocabulary])


def count(text: str, vocabulary: str) -> int:
    """Tokens of `text` in one of `VOCABULARIES`; what looks like a special token is counted as the text it is."""
    return int(_tokenizer(vocabulary).count(text.encode("utf-8", "replace").decode()))


def counts(text: str) -> dict[str, int]:
    """Tokens of `text` by vocabulary."""
    return {vocabulary: count(text, vocabulary) for vocabulary in VOCABULARIES}


def most(text: str) -> int:
    """Tokens of `text` in that of the `VOCABULARIES` that needs the most."""
    return max(counts(text).values())
