"""How an answer is judged: right, noted (it says first what it leaves out), unanswered, or wrong."""

import re

DECLINED = re.compile(
    r"I cannot|I could not|not finish|needs `|There is no|there is no|no employee|Error|error|Nothing was found|"
    r"No [a-z ]+ were found",
)


def figures(text: str) -> set[str]:
    """The numbers in a text, without grouping and trailing zeros."""
    found = re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)
    return {
        number.replace(",", "").rstrip("0").rstrip(".") if "." in number else number.replace(",", "")
        for number in found
    }


def _says(answer: str, wanted: str) -> bool:
    if re.fullmatch(r"-?\d+(?:\.\d+)?", wanted):
        return figures(wanted) <= figures(answer)
    return wanted in answer


def judge(answer: str, said: list[str] | None) -> str:
    """The verdict on an answer, given what it must and must not say."""
    declined = DECLINED.search(answer) is not None
    noted = "Left out of account" in answer
    if said is None:
        return "declined" if declined else "noted" if noted else "wrong"
    right = all(not _says(answer, w[1:]) if w.startswith("!") else _says(answer, w) for w in said)
    if right and not declined:
        return "answered, noted" if noted else "answered"
    return "unanswered" if declined else "unanswered, noted" if noted else "wrong"
