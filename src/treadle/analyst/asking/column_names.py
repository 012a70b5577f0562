"""Column names: what the name of a column says of its values, such as that they are codes or have days.

Pure, its neighbour is `treadle.analyst.asking.columns`.
"""

import re

FIGURES = re.compile(
    r"amount|value|total|(?<![a-z])sums?(?![a-z])|summe|balance|price|cost|revenue|sales|qty|quantity|weight|hours"
    r"|betrag|menge|wert|saldo|umsatz|(?<![a-z])(montant|solde|import[eo])s?(?![a-z])|^(dmbtr|wrbtr|hsl|ksl|tsl|osl|msl|netwr|kwert)",
    re.IGNORECASE,
)
"""What names of figures have in them."""
CODES = re.compile(
    r"(^|_|\b)(id|no|nr|num|number|code|key|company|account|plant|period|year|quarter|month|week|day|material|customer"
    r"|vendor|supplier|center|centre|element|order|document|doc|invoice|item|position|pos|project|contract|branch|store"
    r"|employee|client|partner|segment|version|ledger|organi[sz]ation|org|group|list|sheet|zip|plz|postcode|phone"
    r"|\w*konto|\w*nummer|bukrs|rbukrs|hkont|racct|kunnr|lifnr|matnr|werks|kostl|prctr|gjahr|ryear|jahrper|poper"
    r"|0?fiscper3?|belnr|docnr|docln|buzei|ebelp?n?|vbeln|posnr|aufnr|pernr|anln1|rldnr|rassc|mandt|vbund|bschl|kst|ktr"
    r"|monat|jahr|quartal|woche|tag|periode|zeile|buchungskreis|cocd|gesellschaft|\w*kunde|debitor|kreditor|lieferant"
    r"|\w*auftrag|\w*beleg|bestellung|rechnung|kostenstelle|kostenart|artikel|werk|lager|projekt|vertrag|filiale"
    r"|mandant|\w*gruppe|\w*schl(ü|ue)ssel)"
    r"($|_|\b|\d)",
    re.IGNORECASE,
)
"""What names of codes have in them, also beside the words of figures, as `Sales order` has."""
_NAMED = re.compile(
    r"[\W_]*(id|no|nr|num|number|key|code|center|centre|element|object|order|document|doc|item|account"
    r"|organi[sz]ation|org|office|area|group|district|list|sheet|date|type|class|category|\w*nummer|\w*konto"
    r"|\w*schl(ü|ue)ssel|\w*beleg|\w*auftrag|\w*datum|\w*art)($|_|\b|\d)",
    re.IGNORECASE,
)
_QUANTITIES = re.compile(
    r"qty|quantity|menge|stück|stueck|piece|count|anzahl|weight|gewicht|hours|stunden", re.IGNORECASE
)
_RATES = re.compile(
    r"(^|_|\b)(price|preis|rate|kurs|\w*(zins|steuer|hebe|prozent)satz|ratio|quote|percent|percentage|prozent|pct)"
    r"($|_|\b|\d)",
    re.IGNORECASE,
)
_SUMS = re.compile(r"total|sum|amount|value|betrag|wert|gesamt", re.IGNORECASE)
PERIODIC = re.compile(r"period|month|monat|fisc(year)?per|perio|jahrper", re.IGNORECASE)
"""What names of periods have in them."""
WEEKLY = re.compile(r"(^|_|\b)(0?cal|kalender)?(weeks?|woche|wk|kw|cw)($|_|\b|\d)", re.IGNORECASE)
"""What names of weeks have in them."""
DAILY = re.compile(r"(^|_|\b)(\w*date|\w*datum|budat|bldat|cpudt|posted|day|tag)($|_|\b|\d)", re.IGNORECASE)
"""Names of columns that have days."""
# "Number of units sold" counts them; "number" by itself, or of one thing, may be its name.
_COUNTS = re.compile(
    r"^\W*((number|no\.?|nr\.?|num|count)[\W_]+of[\W_]+.*[a-z]s\b|anzahl|count\b|(units|pieces)([\W_]|$))",
    re.IGNORECASE,
)
EITHER = re.compile(
    r"^\W*(number|num|segment|version|item|items|position|pos|group|list|sheet|order|orders|day|days|week|weeks|month"
    r"|months|contract|material|organi[sz]ation|(number|no\.?|nr\.?|num)[\W_]+of[\W_].*)\W*$",
    re.IGNORECASE,
)
"""What names codes and figures alike, unless another word beside it says which."""


def is_figure(name: str) -> bool:
    """Whether a name is that of a figure, and not of what one belongs to, such as a cost center or a sales order."""
    if _COUNTS.search(name):
        return True
    ends = [match.end() for match in FIGURES.finditer(name)]
    return bool(ends) and _NAMED.match(name, ends[-1]) is None


def is_code(name: str) -> bool:
    """Whether a name is that of a code, such as an account or a period, whose numbers are no figures."""
    return bool(CODES.search(name)) and not is_figure(name)


def is_rate(name: str) -> bool:
    """Whether a name is that of a price or a rate, of which no sum says anything."""
    return bool(_RATES.search(name)) and not _SUMS.search(name)


def is_counted(name: str) -> bool:
    """Whether a name is that of pieces or hours, and not of money."""
    return bool(_QUANTITIES.search(name) or _COUNTS.search(name))
