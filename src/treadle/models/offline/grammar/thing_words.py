"""Names of what one asks for, by which nothing is done: a function that is called by them alone only tells of it, also
where nothing else is said of it.

Data only. Read by `naming`.
"""

from treadle.models.offline.grammar.english import word_set

# Hardly ever verbs. What is one as well, such as a book or a film, does not stand here.
THINGS = word_set(
    """account actor agenda airport allergy altitude antonym artist author basket biography birthday bmi calculator
    calendar calorie capital cart celebrity city climate company continent coordinates country cpu currency customer
    definition department diagnosis dictionary director distance dividend employee encyclopedia fact factorial
    fibonacci flight forecast gcd gdp geography headcount headline history holiday horoscope hospital hotel humidity
    inbox income info ingredient joke language latency latitude lcm longitude lyrics manager median member menu
    movie museum nationality news nutrition percentage pharmacy planet politician population portfolio postcode
    profit pronunciation province quotation random recipe restaurant revenue riddle river salary sqrt stdev student
    sunrise sunset supermarket symptom synonym tax teacher team temperature theater theatre time timezone today
    tomorrow translation trivia turnover university uptime user vat vendor vocabulary wallet weather web weekday
    wiki wikipedia word world yesterday zodiac"""
)

# They stand between such names, or behind them: `capital_of`, `web_search`.
BESIDE_THINGS = word_set(
    "of in by for number name list lookup search stock tool converter checker finder searcher translator"
)
