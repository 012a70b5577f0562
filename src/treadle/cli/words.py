"""Words: an option that takes one of several, and proposes the one that was meant."""

import click

from treadle.tools.errors import not_one_of


class OneOf(click.Choice[str]):
    """One of these words; the type of an option."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """What is said of a word that is none of them, as a server says it of a query."""
        return not_one_of(value, self.choices)
