"""How likely the branches of a strategy are: Hypothesis counts a branch that is given twice once."""

from typing import Any

from hypothesis import strategies as st


def mostly(usual: st.SearchStrategy[Any], *others: st.SearchStrategy[Any], times: int = 4) -> st.SearchStrategy[Any]:
    """`usual`, so many times as often as each of `others`."""
    branches = (*(usual,) * times, *others)
    return st.sampled_from(range(len(branches))).flatmap(lambda i: branches[i])
