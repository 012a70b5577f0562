"""SQLGlot's expressions under one name, imported when the first of them is made: most of treadle needs none."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp as exp
else:

    class _Expressions:
        """`sqlglot.exp`, once something of it is asked for."""

        def __getattr__(self, name: str) -> Any:
            from sqlglot import exp

            found = getattr(exp, name)
            setattr(self, name, found)
            return found

    exp = _Expressions()
