"""Words that say how, when or where something is done, and that nothing is called by: "later" of "Call Ann later".

Read by `question`.
"""

from treadle.models.offline.grammar.english import word_set

_NO_ADVERBS = word_set(
    "family assembly supply reply italy july anomaly monopoly butterfly jelly belly rally bully lily emily sally kelly "
    "billy molly polly holly elderly melancholy multiply apply comply rely imply"
)
_ADVERBS = word_set(
    """once twice thrice times later sooner soon often sometimes seldom always forever already meanwhile asap
    afterwards afterward beforehand overnight midday mornings afternoons evenings nights weekdays weekends nonstop
    anyway anyhow somehow regardless together apart alone ahead fast quick hard loud better usual
    inside outside indoors outdoors upstairs downstairs abroad nearby
    theirs himself herself itself themselves ourselves yourselves oneself"""
)


def is_adverb(word: str) -> bool:
    """Whether a word, in lower case, may be one, unless another word stands behind it: a "hard disk" is a thing."""
    return word in _ADVERBS or (len(word) > 4 and word.endswith("ly") and word not in _NO_ADVERBS)
