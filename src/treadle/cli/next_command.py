"""The next command: what to type next, so that it works as it is typed."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

from treadle.cli.choose import ModelChoice
from treadle.cli.configure import Options
from treadle.cli.waiting import Waiting
from treadle.drivers.approvals import own_lines
from treadle.drivers.drive import CALLED
from treadle.journal.addresses import without_password
from treadle.kernel.events import RunStarted
from treadle.models.names import OFFLINE

COMMAND_LINE = "treadle"
"""What the command line's own agent is called in journals."""


@dataclass(frozen=True, slots=True)
class NextCommand:
    """The commands that go on with a run.

    Attributes:
        agent: the words that name its agent again.
        journal: those that name its journal.
        remark: what is to be said about the commands, if they are not all that must be typed.
        above: the run that the run works for, where what it waits for is decided; empty if it works for none.
    """

    agent: tuple[str, ...] = ()
    journal: tuple[str, ...] = ()
    remark: str = field(default="", kw_only=True)
    above: str = field(default="", kw_only=True)

    @classmethod
    def again(cls, options: Options, choice: ModelChoice) -> "NextCommand":
        """The commands for a run that was started with `options`."""
        agent = [] if options.agent is None else ["--agent", options.agent]
        if choice.named:
            agent += ["--model", choice.name]
        for option, values in (("--skill", options.skill), ("--tools", options.tools), ("--mcp", options.mcp)):
            agent += [word for value in values for word in (option, value)]
        agent += [] if options.sources is None else ["--sources", options.sources]
        agent += [] if options.user is None else ["--user", options.user]
        return cls(tuple(agent), journal_words(options.journal))

    @classmethod
    def guessed(cls, started: RunStarted, journal: str | None) -> "NextCommand":
        """The commands for a run of which only the journal is known."""
        if started.parent is not None:
            return cls((), journal_words(journal), above=started.parent.run_id)
        if only_with_agent(started):
            return cls(
                ("--agent", "MODULE:AGENT"), journal_words(journal), remark="MODULE:AGENT is the agent that began it"
            )
        if only_with_model(started):
            if started.agent != COMMAND_LINE:
                remark = "MODULE:AGENT is the agent that began it; --model NAME goes on with another model"
                return cls(("--agent", "MODULE:AGENT"), journal_words(journal), remark=remark)
            remark = "MODEL is the one that --model named; add --tools, --skill and --mcp as it was begun"
            return cls(("--model", "MODEL"), journal_words(journal), remark=remark)
        return cls(
            (),
            journal_words(journal),
            remark="add what it was begun with: --agent, or --model, --tools, --skill and --mcp",
        )

    def line(self, verb: str, run_id: str, *words: str) -> str:
        """The command `verb`, for a shell."""
        agent = () if verb == "show" else self.agent
        return shlex.join(["treadle", verb, run_id, *words, *agent, *self.journal])

    def lines(self, waiting: Waiting) -> Iterable[str]:
        """What can be typed about the calls that wait, each with what it does."""
        if self.above and waiting.calls:
            yield f"it works for another run, and is decided there: {self.line('show', self.above)}"
            return
        run_id = waiting.run_id
        to_decide = [call for call in waiting.calls if call.pending.kind == "approval"]
        them = "it" if len(to_decide) == 1 else "all"
        if to_decide:
            yield f"allow {them}: {self.line('approve', run_id)}"
            yield f"refuse {them}: {self.line('deny', run_id)}"
        if len(to_decide) > 1:
            yield f"one of them: {self.line('approve', run_id, to_decide[0].name)}"
        for call in waiting.calls:
            if call.pending.kind == "interrupted":
                yield f"it was done: {self.line('resolve', run_id, call.name, '--done', 'RESULT')}"
                yield f"it failed: {self.line('resolve', run_id, call.name, '--failed', 'WHY')}"
                yield f"run it again: {self.line('resolve', run_id, call.name, '--again')}"
            elif call.pending.kind == "result":
                yield f"give its result: {self.line('resume', run_id, '--result', f'{call.name}=VALUE')}"
        if self.remark and waiting.calls:
            yield f"({self.remark})"


def journal_words(named: str | None) -> tuple[str, ...]:
    """The words that name the journal again; none where no option did."""
    return () if named is None else ("--journal", without_password(named))


def only_with_agent(started: RunStarted) -> bool:
    """Whether a run can only be gone on with by the agent itself, whatever tools are named."""
    if started.rules is None or started.hooks is None:
        return started.agent != COMMAND_LINE
    own = [f"ask {name} (its own)" for name in started.tools]
    # Those of agents below come with the tools that they are.
    return any(not line.startswith(tuple(own)) for line in own_lines((*started.rules, *started.hooks)))


def only_with_model(started: RunStarted) -> bool:
    """Whether a run only goes on with a model that is named for it, as its name need not bring its own back."""
    return not (started.named or started.model == OFFLINE or started.origin == CALLED)
