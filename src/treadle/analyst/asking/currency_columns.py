"""Currency columns: which of a file's columns says what each of its amounts is in.

A list of SAP's has amounts in the currency of the document and in that of the company, side by side. What neither the
fields' names nor the number of columns decide is asked. Pure, its neighbour is `propose`.
"""

import re
from collections.abc import Mapping

from treadle.analyst.asking.columns import Guess

# BSEG and BKPF, ACDOCA, VBAP.
_FIELDS = {
    "wrbtr": "waers", "dmbtr": "hwaer", "dmbe2": "hwae2", "dmbe3": "hwae3", "wsl": "rwcur", "tsl": "rtcur",
    "hsl": "rhcur", "ksl": "rkcur", "osl": "rocur", "netwr": "waerk",
}  # fmt: skip
_LOCAL = re.compile(
    r"hausw|konzernw|gruppenw|local|company code curr|group curr|(^|[\W_])(hw|lc|kw)($|[\W_])"
    r"|^(dmbtr|dmbe[23]|[hko]sl)$",
    re.IGNORECASE,
)


def currency_columns(guesses: Mapping[str, Guess]) -> tuple[dict[str, str], str]:
    """Returns the column of the currency by that of the amount, and a question where this is not known.

    Args:
        guesses: what each column was taken for.
    """
    currencies = [column for column, each in guesses.items() if each.currency]
    amounts = [column for column, each in guesses.items() if each.role == "measure" and each.money and not each.unit]
    if not currencies:
        return {}, ""
    known = {column.casefold(): column for column in currencies}
    found = {column: known[field] for column in amounts if (field := _FIELDS.get(column.casefold(), "")) in known}
    left = [column for column in amounts if column not in found]
    if len(currencies) == 1 and not _LOCAL.search(currencies[0]):
        # Where some are in a currency of their own, it is not that of the others.
        local = [column for column in left if _LOCAL.search(column)]
        left = local if len(local) < len(amounts) else []
    elif len(currencies) == 1:
        left = []
    found |= {column: currencies[0] for column in amounts if column not in found and column not in left}
    if not left:
        return found, ""
    return found, (
        f"{', '.join(left)} may be in the currency that {' or '.join(currencies)} has, or in another: declare "
        f"'currency' or 'unit' for each, without which amounts in several currencies are added up"
    )
