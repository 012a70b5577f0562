"""Parameters: the values of a statement, which never stand in its text."""

from treadle.analyst.sql.lazy import exp


class Parameters:
    """The values of one statement, each behind a placeholder."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}

    def add(self, value: object) -> "exp.Expr":
        """Returns the placeholder of `value`."""
        name = f"p{len(self.values)}"
        self.values[name] = value
        return exp.Placeholder(this=name)
