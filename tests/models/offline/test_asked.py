"""Hundreds of questions over many toolboxes: no answer is wrong, and at least as many are answered as ever were."""

from pathlib import Path

import pytest

from treadle import Agent, Conversation, Skill
from treadle.analyst import analyst_skill

from .asked.figures import FIGURES
from .asked.judge import judge
from .asked.plain import PLAIN_QUESTIONS, Asked
from .asked.sources import make_catalog
from .asked.toolboxes import tools_of

ASKED = [*PLAIN_QUESTIONS, *FIGURES]
MAY_GO_UNANSWERED = {"Convert 3 km and 5 km to miles"}


@pytest.fixture(scope="module")
def analyst(tmp_path_factory: pytest.TempPathFactory) -> Skill:
    return analyst_skill(make_catalog(tmp_path_factory.mktemp("asked")))


def answer_to(box: str, questions: tuple[str, ...], analyst: Skill) -> str:
    """The answer to the last of the questions, asked in one conversation."""
    agent = Agent("offline", skills=[analyst]) if box == "analyst" else Agent("offline", tools=tools_of(box))
    conversation = Conversation()
    return [agent.run_sync(question, conversation=conversation).text for question in questions][-1]


@pytest.mark.parametrize("asked", ASKED, ids=[f"{box}: {' / '.join(questions)}" for box, questions, _ in ASKED])
def test_an_answer_is_right_or_says_what_it_leaves_out(asked: Asked, analyst: Skill) -> None:
    box, questions, said = asked
    answer = answer_to(box, questions, analyst)
    verdict = judge(answer, said)
    assert verdict != "wrong", answer
    if said is not None and questions[-1] not in MAY_GO_UNANSWERED:
        assert verdict.startswith("answered"), answer


def test_there_are_enough_questions() -> None:
    assert len(ASKED) >= 400
    assert Path(__file__).parent.joinpath("asked").is_dir()
