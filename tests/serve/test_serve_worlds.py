"""Two servers over one journal, in worlds that Hypothesis makes: whatever is asked, in whatever order, whoever dies."""

import asyncio

from depth import deep
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from worlds_of_servers import Follower, World, times_said

from treadle.drivers import conversing
from treadle.serve import asked_again, deciding, feed, openapi, rest

server = st.integers(0, 1)
place = st.integers(0, 9)
pace = st.lists(st.integers(0, 3), min_size=1, max_size=5)
words = st.sampled_from(["talk", "pay", "note", "wait"])
talks = st.sampled_from([None, "a", "a", "b"])

LOOKS = {"figures": "/api/statistics", "conversation": "/api/conversations/{}", "chat": "/ai-sdk/clerk/{}/messages"}

# What each server says of its routes is the same, and takes longer than all that a world asks of it.
DESCRIBED = openapi.description(rest.ENDPOINTS)


class Servers(RuleBasedStateMachine):
    """What may be asked of two servers."""

    def __init__(self):
        super().__init__()
        self.kept = (conversing._LOOK, asked_again._LOOK, deciding._LOOK, feed._SILENCE, openapi.description)
        conversing._LOOK = asked_again._LOOK = deciding._LOOK = 0.0001
        feed._SILENCE = 0.05
        openapi.description = lambda endpoints: DESCRIBED
        self.loop = asyncio.new_event_loop()
        self.world = self.do(self._made())
        self.followed = []

    async def _made(self):
        return World()

    def do(self, work):
        return self.loop.run_until_complete(work)

    def teardown(self):
        try:
            self.do(self.world.check_at_the_end())
        finally:
            self.do(self.world.end())
            self.loop.close()
            conversing._LOOK, asked_again._LOOK, deciding._LOOK, feed._SILENCE, openapi.description = self.kept

    @initialize()
    def begin_servers(self):
        self.do(self.world.begin())

    def run_at(self, at):
        found = [*self.world.runs]
        return found[-1 - at % len(found)] if found else None

    async def asked(self, which, *request):
        return await self.world.servers[which].ask(*request)

    # Beginning.

    async def _begin(self, which, word, talk, key=None):
        text = f"{word} {self.world.next()}"
        body = {"agent": "clerk", "input": text, **({} if talk is None else {"conversation": talk})}
        headers = () if key is None else (("idempotency-key", key),)
        status, answer = await self.asked(which, "POST", "/api/runs", body, headers)
        assert status in (None, 201, 409, 503), answer
        if status == 201:
            self.world.remember(answer["id"], text)
        return status, answer

    @rule(which=server, word=words, talk=talks, turns=place)
    def begin(self, which, word, talk, turns):
        async def work():
            await self._begin(which, word, talk)
            await self.world.turns(turns * 5)

        self.do(work())

    @rule(word=words, talk=st.sampled_from(["a", "b", "c"]), paces=st.tuples(pace, pace))
    def begin_at_once_on_both(self, word, talk, paces):
        async def work():
            free = all(
                self.world.line(one).status == "finished"
                for one in self.world.runs
                if self.world.line(one).conversation == talk
            )
            for one, set_to in zip(self.world.servers, paces, strict=True):
                one.window.paced(set_to)
            answers = await asyncio.gather(*[self._begin(which, word, talk) for which in (0, 1)])
            codes = sorted([status or 0 for status, _ in answers])
            # One may have come to its end before the other began.
            over = [self.world.line(one["id"]).status == "finished" for status, one in answers if status == 201]
            assert codes != [201, 201] or any(over), "both went on"
            assert codes != [409, 409] or not free, "both gave way"

        self.do(work())

    @rule(which=server, word=words, talk=talks, other=server)
    def begin_twice_with_one_key(self, which, word, talk, other):
        async def work():
            text, key = f"{word} {self.world.next()}", f"k{self.world.next()}"
            body = {"agent": "clerk", "input": text, **({} if talk is None else {"conversation": talk})}
            ask = ("POST", "/api/runs", body, (("idempotency-key", key),))
            answers = await asyncio.gather(*[self.asked(one, *ask) for one in (which, other)])
            ids = {answer["id"] for status, answer in answers if status == 201}
            assert len(ids) <= 1
            for run_id in ids:
                self.world.remember(run_id, text)

        self.do(work())

    @rule(talk=st.sampled_from(["a", "b"]), at=st.integers(0, 2), word=words, paces=st.tuples(pace, pace), late=place)
    def resume_one_and_begin_one_at_once(self, talk, at, word, paces, late):
        async def work():
            runs = [one for one in self.world.runs if self.world.line(one).conversation == talk]
            if not runs:
                return
            run_id, text = runs[-1 - at % len(runs)], f"talk {self.world.next()}"
            for one, set_to in zip(self.world.servers, paces, strict=True):
                one.window.paced(set_to)

            async def begins():
                await self.world.turns(late * 8)
                return await self._begin(1, word, talk)

            goes_on = self.asked(0, "POST", f"/api/runs/{run_id}/resume", {"message": text})
            (status, _), _ = await asyncio.gather(goes_on, begins())
            if status == 200:
                self.world.remember(run_id, text)

        self.do(work())

    @rule(which=server, front=st.sampled_from(["ai-sdk", "ag-ui"]), talk=st.sampled_from(["a", "b"]), word=words,
          again=st.sampled_from(["", "same", "other"]), late=place)  # fmt: skip
    def post(self, which, front, talk, word, again, late):
        """And once more, as by a transport that tries again: to the same server, or to the other when it is told."""

        async def work():
            text, name = f"{word} {self.world.next()}", f"m{self.world.next()}"

            async def posts(one):
                status, run_id, answer = await self.world.servers[one].post(front, talk, name, text)
                assert status in (None, 200, 409, 503), answer
                if status == 200:
                    assert run_id in self.world.shared._runs, answer
                    self.world.remember(run_id, text)

            posting = asyncio.gather(posts(which), *([posts(which)] if again == "same" else []))
            await self.world.turns(late * 5)
            await posting
            if again == "other":
                await posts(1 - which)
            assert times_said(self.world.shared._runs, text) <= 1

        self.do(work())

    # Runs that there are.

    @rule(which=server, at=place)
    def say(self, which, at):
        async def work():
            run_id, text = self.run_at(at), f"talk {self.world.next()}"
            if run_id is not None:
                status, _ = await self.asked(which, "POST", f"/api/runs/{run_id}/messages", {"text": text})
                if status == 200:
                    self.world.remember(run_id, text)

        self.do(work())

    @rule(
        which=server, at=place, verb=st.sampled_from(["approve", "edit", "deny", "again", "wrong"]), twice=st.booleans()
    )
    def decide(self, which, at, verb, twice):
        async def work():
            run_id = self.run_at(at)
            if run_id is None:
                return
            _, found = await self.asked(which, "GET", f"/api/runs/{run_id}")
            if not found.get("pending"):
                return
            call = found["pending"][0]
            told = {"call": call["call"], "fingerprint": call["fingerprint"], "verdict": verb}
            key, amounts = (run_id, call["call"]), self.world.allowed.setdefault((run_id, call["call"]), set())
            if verb in ("approve", "again"):
                amounts.add(call["arguments"].get("amount"))
                self.world.again[key] += verb == "again"
            elif verb == "edit":
                amount = self.world.next()
                told["arguments"] = {"amount": amount}
                # One that may have been done takes no other arguments.
                amounts |= {amount} if verb in call["allowed"] else set()
            elif verb == "wrong":
                told |= {"fingerprint": "0" * 8, "verdict": "approve"}
            ask = ("POST", f"/api/runs/{run_id}/decisions", {"decisions": [told]})
            answers = await asyncio.gather(*[self.asked(one, *ask) for one in ((0, 1) if twice else (which,))])
            done = [status for status, _ in answers if status == 200]
            assert len(done) <= (verb != "wrong"), answers

        self.do(work())

    @rule(which=server, at=place, what=st.sampled_from(["cancel", "pause", "resume", "resume"]), message=st.booleans())
    def steer(self, which, at, what, message):
        async def work():
            run_id = self.run_at(at)
            if run_id is None:
                return
            text = f"talk {self.world.next()}"
            body = {"message": text} if what == "resume" and message else {}
            status, _ = await self.asked(which, "POST", f"/api/runs/{run_id}/{what}", body)
            if status == 200 and body:
                self.world.remember(run_id, text)
            if status == 200 and what == "cancel":
                assert self.world.line(run_id).status == "finished"

        self.do(work())

    @rule(which=server, at=place, message=st.booleans())
    def fork(self, which, at, message):
        async def work():
            run_id = self.run_at(at)
            if run_id is not None:
                text = f"talk {self.world.next()}"
                body = {"at": 0, **({"message": text} if message else {})}
                status, answer = await self.asked(which, "POST", f"/api/runs/{run_id}/fork", body)
                if status == 201 and message:
                    self.world.remember(answer["id"], text)

        self.do(work())

    @rule(which=server, at=place)
    def delete(self, which, at):
        async def work():
            run_id = self.run_at(at)
            if run_id is not None:
                self.world.forget(run_id)
                await self.asked(which, "DELETE", f"/api/runs/{run_id}")

        self.do(work())

    @rule(which=server, talk=st.sampled_from(["a", "b"]))
    def delete_a_conversation(self, which, talk):
        async def work():
            before = [one for one in self.world.runs if self.world.line(one).conversation == talk]
            told = {one: self.world.told.get(one) for one in before}
            for one in before:
                self.world.forget(one)
            status, _ = await self.asked(which, "DELETE", f"/api/conversations/{talk}")
            if status == 409:
                for one, texts in told.items():
                    self.world.deleted.discard(one)
                    if texts and one in self.world.shared._runs:
                        self.world.told[one] = texts

        self.do(work())

    @rule(
        talk=st.sampled_from(["a", "b"]),
        at=place,
        what=st.sampled_from([*LOOKS, "DELETE"]),
        paces=st.tuples(pace, pace),
    )
    def one_goes_as_the_others_are_asked_for(self, talk, at, what, paces):
        async def work():
            for one, set_to in zip(self.world.servers, paces, strict=True):
                one.window.paced(set_to)
            before = self.world.runs_of(talk)
            if not before:
                return
            run_id, told = before[at % len(before)], {one: self.world.told.get(one) for one in before}
            for one in before if what == "DELETE" else [run_id]:
                self.world.forget(one)
            asked = ("DELETE", f"/api/conversations/{talk}") if what == "DELETE" else ("GET", LOOKS[what].format(talk))
            _, (status, answer) = await asyncio.gather(
                self.asked(0, "DELETE", f"/api/runs/{run_id}"), self.asked(1, *asked)
            )
            left = self.world.runs_of(talk)
            if what == "DELETE":
                assert status != 204 or not left, f"a conversation that was deleted has {left}"
                for one in left:
                    self.world.deleted.discard(one)
                    if told[one]:
                        self.world.told[one] = told[one]
            assert status != 404 or not left, (what, answer)

        self.do(work())

    # Servers, and who follows.

    @rule(which=server, killed=st.booleans(), pace=pace)
    def restart(self, which, killed, pace):
        self.do(self.world.restart(which, pace, killed=killed))

    @rule(which=server, calls=st.integers(1, 25), word=words, talk=talks)
    def die_in_the_middle(self, which, calls, word, talk):
        async def work():
            self.world.servers[which].window.calls_left = calls
            await self._begin(which, word, talk)
            await self.world.turns(60)
            self.world.servers[which].window.calls_left = None
            await self.world.restart(which, (0,), killed=True)

        self.do(work())

    @rule(which=server, after=st.integers(0, 25), calls=st.integers(1, 12))
    def the_journal_is_away(self, which, after, calls):
        self.world.servers[which].window.away(after, calls)

    @rule(which=server, after=st.integers(0, 25), calls=st.integers(1, 12), word=words, talk=talks)
    def the_journal_is_away_in_the_middle(self, which, after, calls, word, talk):
        async def work():
            window = self.world.servers[which].window
            window.away(after, calls)
            await self._begin(which, word, talk)
            await self.world.turns(60)
            window.away(0, 0)

        self.do(work())

    @rule(calls=st.integers(1, 25), word=words, talk=st.sampled_from(["a", "b"]), paces=st.tuples(pace, pace))
    def one_dies_as_both_begin(self, calls, word, talk, paces):
        async def work():
            for one, set_to in zip(self.world.servers, paces, strict=True):
                one.window.paced(set_to)
            self.world.servers[0].window.calls_left = calls
            await asyncio.gather(*[self._begin(which, word, talk) for which in (0, 1)])
            self.world.servers[0].window.calls_left = None
            await self.world.restart(0, (0,), killed=True)

        self.do(work())

    @rule(turns=st.integers(1, 300))
    def let_time_pass(self, turns):
        self.do(self.world.turns(turns))

    @rule(opened=st.booleans())
    def what_is_waited_for(self, opened):
        (self.world.open.set if opened else self.world.open.clear)()

    @rule(which=server, at=place)
    def follow(self, which, at):
        async def work():
            run_id = self.run_at(at)
            if run_id is not None:
                self.world.followers.append(Follower(run_id))
                self.world.followers[-1].come(self.world.servers[which])
                await self.world.turns(10)

        self.do(work())

    @precondition(lambda self: self.world.followers)
    @rule(which=server, at=place, back=st.booleans())
    def leave_and_come_back(self, which, at, back):
        async def work():
            follower = self.world.followers[at % len(self.world.followers)]
            follower.leave()
            await self.world.turns(5)
            if back:
                follower.come(self.world.servers[which])
                await self.world.turns(10)

        self.do(work())

    @invariant()
    def holds(self):
        self.world.check()


TestServers = Servers.TestCase
TestServers.settings = settings(max_examples=deep(15), stateful_step_count=20, deadline=None)
