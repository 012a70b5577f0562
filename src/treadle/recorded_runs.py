"""Recorded runs: what an agent does with runs that have begun, by their ids in its journal or by their results."""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, Never

from typing_extensions import TypeVar

from treadle.conversation import Conversation
from treadle.drivers.answers import Answers
from treadle.drivers.assembly import Stock
from treadle.drivers.checks import Input, OnEvent, refuse_unknown
from treadle.drivers.dispatch import Dispatcher, Pausing, cancelled, carried, submitted_again
from treadle.drivers.drive import driven
from treadle.drivers.outcome import with_typed_output
from treadle.drivers.purse.drawing import Budgets
from treadle.drivers.purse.spending import Spending, spending_of
from treadle.drivers.taking_up import GoingOn, recorded, taken_up
from treadle.journal.ones_own import standing_of
from treadle.kernel.errors import Misuse
from treadle.kernel.stop import Limits
from treadle.models.port import Model
from treadle.result import Output, Pending, RunResult, result_of
from treadle.timetravel.forking import Forked, begin_fork, forked
from treadle.timetravel.replay import Replay, replayed

Deps = TypeVar("Deps", contravariant=True, default=Any)
"""The type of what runs are given as `deps=`."""


class RecordedRuns(Generic[Deps, Output]):
    """What `treadle.Agent` does with runs that have begun."""

    _stock: Stock

    async def resume(
        self,
        run: str | RunResult[Any],
        *,
        approve: Iterable[str | Pending] | Mapping[str, Mapping[str, Any] | None] = (),
        deny: Iterable[str | Pending] | Mapping[str, str] = (),
        results: Mapping[str, Any] | Mapping[Pending, Any] | None = None,
        message: Input = None,
        conversation: Conversation | None = None,
        deps: Deps | None = None,
        limits: Limits | None = None,
        budget: Budgets = None,
        user: str | None = None,
        takeover: bool = False,
        on_event: OnEvent = None,
        **unknown: Never,
    ) -> RunResult[Output]:
        """Goes on with a run that is paused, that a limit stopped, or whose process died.

        A run that has finished goes on if `limits`, `budget` or `message` is given; without, its result is returned as
        it is. One that was answered takes a message only.

        Args:
            run: the run's id in the agent's journal, or the result of the run when it paused.
            approve: the calls to allow: what is in `pending`, or by `call_id`, or by `key`, which holds for these
                arguments only; as a mapping, with the arguments to use in place of the model's, or None to use those. A
                call that may have been done takes no others than its own.
            deny: the calls not to allow; as a mapping, with the reason that the model is shown.
            results: the results of calls that are made outside.
            message: something to say to the run, as in `run`; the model is shown it at its next call.
            conversation: the conversation that the run belongs to, as it was when the run paused.
            deps: as in `run`; not kept in the journal.
            limits: in place of the limits that the run was under.
            budget: as in `run`; a run that a budget stopped goes on if one is given.
            user: as in `run`; needed only where no budget has it in a file or in this process.
            takeover: whether to take the run from a process, or a task of this one, that is driving it. That one stops
                at its next append, with a `TakenOver`. From one that is gone or silent it is taken in any case.
            on_event: as in `run`.

        Raises:
            UnknownRun: the journal has no such run.
            RunHeld: it is under way, and not to be taken over; says where.
            Misuse: a decision names a call that does not wait for it, the run was started under stricter rules than
                this agent's, or more was said in the conversation meanwhile.
            RunStopped: a limit was reached and `on_limit` is "raise"; not of a run that had ended before.
        """
        refuse_unknown(self.resume, unknown, type(self))
        answers = Answers.of(approve, deny, results or {})
        going_on = GoingOn(answers, message, conversation, deps, limits, on_event, budget, user, takeover=takeover)
        gone_on = await taken_up(self._stock.config, run, going_on)
        return await driven(gone_on.run, gone_on.earlier) if gone_on.to_do else gone_on.result

    async def fork(
        self,
        run: str | RunResult[Any],
        *,
        at: int,
        message: Input = None,
        tool_results: Mapping[str, Any] | None = None,
        model: str | Model | None = None,
        instructions: str | None = None,
        limits: Limits | None = None,
        deps: Deps | None = None,
        budget: Budgets = None,
        user: str | None = None,
        on_event: OnEvent = None,
        **unknown: Never,
    ) -> RunResult[Output]:
        """Goes on from the beginning of step `at` of a run as a run of its own, and leaves the run as it is.

        What the steps before did is done and not repeated. What they took counts against the limits and stands in the
        result; it is the run that paid it (`spending` tells the two apart). Calls of the step before whose results are
        replaced are not made again either.

        Args:
            run: the run's id in the agent's journal, or its result.
            at: the step, from 0; one after the last, to go on where the run ended.
            message: something to say at that point, as in `run`; the model is shown it at its next call.
            tool_results: other results of calls of the step before, by call id.
            model: in place of the agent's.
            instructions: in place of those that the run was begun with; empty for none.
            limits: in place of those that the run was under.
            deps: as in `run`.
            budget: as in `run`.
            user: as in `resume`.
            on_event: as in `run`.

        Raises:
            UnknownRun: the journal has no such run.
            Misuse: it has no such step or call, works for another run, was started under stricter rules than this
                agent's, or had ended there and nothing is said to it.
            RunStopped: a limit was reached and `on_limit` is "raise".
        """
        refuse_unknown(self.fork, unknown, type(self))
        asked = Forked(
            at, message, tool_results, model, limits, deps, on_event, budget, user, instructions=instructions
        )
        return await driven(*await forked(self._stock.config, run, asked))

    async def begin_fork(
        self,
        run: str,
        *,
        at: int,
        message: Input = None,
        tool_results: Mapping[str, Any] | None = None,
        model: str | Model | None = None,
        instructions: str | None = None,
        limits: Limits | None = None,
        deps: Deps | None = None,
        budget: Budgets = None,
        user: str | None = None,
        **unknown: Never,
    ) -> str:
        """`fork`, recorded and not carried out: its id. Whoever resumes it, here or elsewhere, carries it out.

        Raises:
            UnknownRun, Misuse: as `fork`; and if the agent keeps no journal.
        """
        refuse_unknown(self.begin_fork, unknown, type(self))
        asked = Forked(at, message, tool_results, model, limits, deps, None, budget, user, instructions=instructions)
        begun = await begin_fork(self._stock.config, run, asked)
        if not isinstance(begun, str):
            raise Misuse("begin_fork needs a journal to keep the fork in: give the agent one, or use fork")
        return begun

    async def replay(
        self,
        run: str | RunResult[Any],
        *,
        deps: Deps | None = None,
        limits: Limits | None = None,
        recorded_limits: bool = False,
        **unknown: Never,
    ) -> Replay:
        """Carries a run out again from its journal, with no model and no tool, and says where it comes out otherwise.

        What came from outside is taken as it was recorded; what the agent decides is decided anew at the same place:
        the first request, each step, nudge, edit of the history, pause and end, and whether each call is made. Of your
        functions those are called that choose: the instructions, `prepare_step`, `stop_when`, context policies of your
        own, rules, and checks of arguments and answers; never a tool, `on_tool_call`, `on_tool_result` or `on_event`.

        Args:
            run: the run's id in the agent's journal, or its result.
            deps: what these functions are given as dependencies.
            limits: in place of the agent's, for a run that was begun with limits of its own.
            recorded_limits: whether the limits are those that the run began with.

        Raises:
            UnknownRun: the journal has no such run.
            Misuse: it works for another run, with which it is replayed.
        """
        refuse_unknown(self.replay, unknown, type(self))
        events, journal = await recorded(self._stock.config, "replay", run)
        return await replayed(
            events, journal, self._stock.config, deps=deps, limits=limits, recorded_limits=recorded_limits
        )

    async def resubmit(
        self,
        run: str,
        *,
        to: Dispatcher,
        approve: Iterable[str | Pending] | Mapping[str, Mapping[str, Any] | None] = (),
        deny: Iterable[str | Pending] | Mapping[str, str] = (),
        results: Mapping[str, Any] | Mapping[Pending, Any] | None = None,
        message: Input = None,
        limits: Limits | None = None,
        user: str | None = None,
        **unknown: Never,
    ) -> str:
        """Records what was decided of a run that waits, and has a worker go on with it: its id.

        With no decision it queues a run anew that says that it is queued or running, and whose worker or place in the
        queue is gone; twice is not wrong. The run keeps its key and priority, and the time before which it does not
        begin; one that was begun or ended before that goes on as soon as a worker is free. The arguments are those of
        `resume`.

        Raises:
            UnknownRun: the journal has no such run.
            RunHeld: something is decided of it, and it is under way.
            Misuse: it waits for a decision and none is given, or one that is given does not fit.
        """
        refuse_unknown(self.resubmit, unknown, type(self))
        answers = Answers.of(approve, deny, results or {})
        going_on = GoingOn(answers, message, limits=limits, user=user, elsewhere=True)
        return await submitted_again(self._stock.config, run, going_on, to)

    async def drive(
        self, run_id: str, *, deps: Deps | None = None, on_event: OnEvent = None, pausing: Pausing | None = None
    ) -> RunResult[Output]:
        """Drives a submitted run to its end or a pause. What a worker calls; it may be called late, twice or at once.

        A run that has finished or waits for a person is left as it is, and its result returned; one whose process died
        is taken up. With `pausing` the run can be paused before its next step, to be driven on elsewhere.

        Raises:
            UnknownRun: the journal has no such run.
            RunHeld: somebody else drives it. Call again later: that one may die.
            JournalConflict: somebody else has taken it over meanwhile.
            Misuse: the run was begun under stricter rules than this agent's.
        """
        return await carried(self._stock.config, run_id, GoingOn(deps=deps, on_event=on_event), pausing)

    async def cancel(
        self, run_id: str | RunResult[Any], *, budget: Budgets = None, **unknown: Never
    ) -> RunResult[Output]:
        """Ends a run as `cancelled`, whoever drives it: that one stops at the next thing that it records.

        Nothing more is done, so that an agent may do it that is less strict than the one that began the run.

        Args:
            run_id: the run's id in the agent's journal, or its result.
            budget: what the run was given as `budget=`, beside its agent's, so that what it has set aside is given
                back.

        Raises:
            UnknownRun: the journal has no such run.
            Misuse: the run was left in the middle under a budget that neither the agent has nor is given, or works for
                another run.
            JournalConflict: the run goes on too fast to be caught; ask again.
        """
        refuse_unknown(self.cancel, unknown, type(self))
        return await cancelled(self._stock.config, run_id, budget=budget)

    async def result(self, run: str | RunResult[Any]) -> RunResult[Output]:
        """What has come of a run so far: nothing is taken up, asked, decided or written for it.

        Of one that is under way, or whose process died, the reason is "running"; of one that waits, `pending` has the
        calls that somebody must decide.

        Args:
            run: the run's id in the agent's journal, or an earlier result. Where there is a journal it is read anew.

        Raises:
            UnknownRun: the journal has no such run.
            Misuse: it is no run, or the agent keeps no journal and was given an id.
        """
        events, journal = await recorded(self._stock.config, "result", run)
        state = standing_of(events)
        found = result_of(state, events=events, sub_runs=None if self._stock.config.journal else journal)
        return with_typed_output(found, self._stock.config, state)

    async def spending(self, run: str | RunResult[Any]) -> Spending:
        """What a run has spent so far, by model, agent, tool and step, with all that worked below it.

        Args:
            run: the run's id in the agent's journal, or its result. Where there is a journal it is read anew.

        Raises:
            UnknownRun: the journal has no such run.
            Misuse: it is no run, or the agent keeps no journal and was given an id.
        """
        return await spending_of(*await recorded(self._stock.config, "spending", run))
