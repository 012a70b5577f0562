"""Two servers over one journal, in worlds: verdicts, results and answers asked for anew, of every front end."""

import asyncio

from depth import deep
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from test_serve_worlds import Servers, pace, place, server
from worlds_of_servers import ASK, QUESTION, said_in_pauses, times_said

from treadle.kernel.events import ApprovalDecided, ToolFinished, ToolStarted
from treadle.kernel.messages import UserMessage

fronts = st.sampled_from(["ai-sdk", "ag-ui", "responses"])
talks = st.sampled_from(["a", "b"])


def posted(front, talk, run_id, call, verb, given, words, name):
    """The path and the body with which a front end decides on a call that waits, and says something beside it."""
    approval = f"{run_id}:{call['call']}#{call['fingerprint']}"
    return {"ai-sdk": _ai_sdk, "ag-ui": _ag_ui, "responses": _responses}[front](
        talk, run_id, call, approval, verb, given, words, name
    )


def _ai_sdk(talk, run_id, call, approval, verb, given, words, name):
    part = {"type": f"tool-{call['tool']}", "toolCallId": call["call"], "input": call["arguments"]}
    if verb == "result":
        part |= {"state": "output-available", "output": given}
    else:
        part |= {"state": "approval-responded", "approval": {"id": approval, "approved": verb != "deny"}}
    said = [{"id": name, "role": "user", "parts": [{"type": "text", "text": words}]}] if words else []
    body = {"id": talk, "messages": [{"id": run_id, "role": "assistant", "parts": [part]}, *said]}
    return "/ai-sdk/clerk", body | ({"edits": {approval: {"amount": given}}} if verb == "edit" else {})


def _ag_ui(talk, run_id, call, approval, verb, given, words, name):
    body = {"threadId": talk, "runId": name, "tools": [], "context": [], "state": {}, "messages": []}
    if verb == "result" and words:
        tool = {"name": ASK.name, "description": ASK.description, "parameters": QUESTION}
        result = {"id": f"{name}-1", "role": "tool", "toolCallId": f"{run_id}:{call['call']}", "content": given}
        said = {"id": f"{name}-2", "role": "user", "content": words}
        return "/ag-ui/clerk", body | {"tools": [tool], "messages": [result, said]}
    payload = {"edit": {"approved": True, "arguments": {"amount": given}}, "deny": False, "result": given}
    entry = {"interruptId": approval, "status": "resolved", "payload": payload.get(verb, True)}
    return "/ag-ui/clerk", body | {"resume": [entry]}


def _responses(talk, run_id, call, approval, verb, given, words, name):
    if verb == "result":
        item = {"type": "function_call_output", "call_id": f"{run_id}:{call['call']}", "output": given}
    else:
        item = {"type": "mcp_approval_response", "approval_request_id": approval, "approve": verb != "deny"}
    said = [{"role": "user", "content": words}] if words else []
    return "/v1/responses", {"model": "clerk", "previous_response_id": f"resp_{run_id}_0", "input": [item, *said]}


def _message(name, text):
    return {"id": name, "role": "user", "parts": [{"type": "text", "text": text}]}


class Posts(Servers):
    """What may be asked of two servers, and what front ends post to them of calls and of answers that there are."""

    async def _waiting(self, which, talk, begins):
        """The newest run of a conversation that waits, and the call; one that is begun, where none is under way."""
        line = self.newest(talk)
        if line is None or line.status == "finished":
            await self._begin(which, begins, talk)
            await self.world.settle()
            line = self.newest(talk)
        if line is None or line.status != "waiting":
            return None, None
        _, found = await self.asked(which, "GET", f"/api/runs/{line.run_id}")
        return line.run_id, next(iter(found.get("pending", ())), None)

    def newest(self, talk):
        found = [line for line in map(self.world.line, self.world.runs) if line.conversation == talk]
        return found[-1] if found else None

    @rule(which=server, front=fronts, talk=talks, verb=st.sampled_from(["approve", "edit", "deny"]),
          begins=st.sampled_from(["pay", "ask"]), beside=st.booleans(), paces=st.tuples(pace, pace), late=place,
          against=st.sampled_from(["", "", "same here", "same there", "denied there"]))  # fmt: skip
    def post_a_decision(self, which, front, talk, verb, begins, beside, paces, late, against):
        """And the same once more, or another decision at the other server, at the same moment."""

        async def work():
            run_id, call = await self._waiting(which, talk, begins)
            if call is None:
                return
            verb_of = verb
            if call["allowed"] == ["result"]:
                verb_of = "result"
            elif verb == "edit" and (front == "responses" or "edit" not in call["allowed"]):
                verb_of = "approve"
            number = self.world.next()
            given = number if verb_of == "edit" else f"result {number}"
            # AG-UI has words beside results alone.
            words = f"talk {number}" if beside and (front != "ag-ui" or verb_of == "result") else ""
            self._allow(run_id, call, verb_of, given)
            path, body = posted(front, talk, run_id, call, verb_of, given, words, f"m{number}")
            for one, set_to in zip(self.world.servers, paces, strict=True):
                one.window.paced(set_to)

            async def other():
                await self.world.turns(late * 3)
                if against == "denied there":
                    refuses = {"call": call["call"], "fingerprint": call["fingerprint"], "verdict": "deny"}
                    return await self.asked(
                        1 - which, "POST", f"/api/runs/{run_id}/decisions", {"decisions": [refuses]}
                    )
                there = which if against == "same here" else 1 - which
                return await self.world.servers[there].send(path, body)

            posting = [self.world.servers[which].send(path, body), *([other()] if against else [])]
            answers = [answer[0] for answer in await asyncio.gather(*posting)]
            assert {*answers} <= {None, 200, 409, 422, 503}, answers
            mine = answers if against.startswith("same") else answers[:1]
            self._hold(run_id, call, verb_of, given, words, mine, alone=against != "denied there")

        self.do(work())

    def _allow(self, run_id, call, verb, given):
        if verb in ("approve", "edit") and "amount" in call["arguments"]:
            amount = given if verb == "edit" else call["arguments"]["amount"]
            self.world.allowed.setdefault((run_id, call["call"]), set()).add(amount)
        self.world.again[run_id, call["call"]] += call["kind"] == "interrupted" and verb == "approve"

    def _hold(self, run_id, call, verb, given, words, answers, *, alone):
        """What a success says was taken is there, whole and once; of what all refused, nothing is."""
        events = self.world.shared._runs[run_id]
        decided = [one for one in events if isinstance(one, ApprovalDecided) and one.call_id == call["call"]]
        assert len(decided) <= 1 + self.world.again[run_id, call["call"]], decided
        told = f"{given}" in [one.content for one in events if isinstance(one, ToolFinished)]
        edited = f'"amount":{given}' in "".join(
            one.arguments or "" for one in events if isinstance(one, ToolStarted | ApprovalDecided)
        )
        if words:
            assert times_said(self.world.shared._runs, words) <= 1
        if 200 in answers:
            if words:
                self.world.remember(run_id, words)
            if verb == "result":
                assert told, f"{given} was taken, and is not there"
            elif alone and call["kind"] == "approval":
                assert [one.approved for one in decided] == [verb != "deny"], (verb, decided)
                assert edited == (verb == "edit"), (given, decided)
        elif {*answers} <= {409, 422}:
            assert not told, f"{given} was refused, and is there"
            assert not edited, f"{given} was refused, and is there"
            assert not words or not times_said(self.world.shared._runs, words), f"{words!r} was refused, and is said"

    @rule(which=server, talk=talks, at=place, word=st.sampled_from(["talk", "pay", "note", "ask"]),
          paces=st.tuples(pace, pace), both=st.booleans(), late=place)  # fmt: skip
    def ask_for_an_answer_anew(self, which, talk, at, word, paces, both, late):
        """After any answer of the chat, or from its beginning; and at the other server, at the same moment."""
        self.do(self._asked_anew(which, talk, at, word, paces, both, late))

    @rule(which=server, talk=talks, at=st.integers(0, 1), paces=st.tuples(pace, pace), both=st.booleans(), late=place)
    def say_something_to_what_waits_and_then_in_other_words(self, which, talk, at, paces, both, late):
        """Once the run has ended; after the answer that waited, or after that to what was said."""

        async def work():
            run_id, call = await self._waiting(which, talk, "pay")
            if call is None or self.newest(talk).run_id != run_id:
                return
            number = self.world.next()
            status, said_to, _ = await self.world.servers[which].post("ai-sdk", talk, f"m{number}", f"talk {number}")
            if (status, said_to) != (200, run_id):
                return
            self.world.remember(run_id, f"talk {number}")
            await self.world.settle()
            _, call = await self._waiting(which, talk, "pay")
            if call is None:
                return
            verb = "result" if call["allowed"] == ["result"] else "approve"
            self._allow(run_id, call, verb, "so")
            await self.world.servers[which].send(*posted("ai-sdk", talk, run_id, call, verb, "so", "", ""))
            await self.world.settle()
            answers = [run_id, *[f"{run_id}:{at}" for at, _ in said_in_pauses(self.world.shared._runs[run_id])]]
            names = ["", *self._answers_of(talk)]
            await self._asked_anew(which, talk, names.index(answers[at % len(answers)]), "talk", paces, both, late)

        self.do(work())

    def _answers_of(self, talk):
        runs = [one for one in self.world.runs if self.world.line(one).conversation == talk]
        return [*runs, *[f"{one}:{at}" for one in runs for at, _ in said_in_pauses(self.world.shared._runs[one])]]

    @rule(
        which=server,
        talk=talks,
        turns=place,
        paces=st.tuples(pace, pace),
        both=st.booleans(),
        late=place,
        seen=st.booleans(),
    )
    def say_something_to_what_is_under_way_and_then_in_other_words(self, which, talk, turns, paces, both, late, seen):
        """Once the run has ended: that goes on from before it was said, also if nothing of it was seen by then."""

        async def work():
            status, answer = await self._begin(which, "wait", talk)
            if status != 201:
                return
            run_id, number = answer["id"], self.world.next()
            await self.world.turns(turns * 10)
            said = _message(f"m{number}", f"talk {number}")
            shown = [{"id": run_id, "role": "assistant", "parts": []}] * seen
            body = {"id": talk, "messages": [*shown, said]}
            status, said_to, _ = await self.world.servers[which].send("/ai-sdk/clerk", body)
            if status == 200:
                self.world.remember(said_to, f"talk {number}")
            await self.world.settle()
            if (status, said_to) != (200, run_id) or self.newest(talk).run_id != run_id:
                return
            names = ["", *self._answers_of(talk)]
            await self._asked_anew(which, talk, names.index(run_id), "talk", paces, both, late, number, seen)

        self.do(work())

    async def _asked_anew(self, which, talk, at, word, paces, both, late, instead=None, seen=True):
        names = ["", *self._answers_of(talk)]
        after, before = names[at % len(names)], {*self.world.shared._runs}
        for one, set_to in zip(self.world.servers, paces, strict=True):
            one.window.paced(set_to)

        async def posts(one):
            await self.world.turns(late * 3 * (one != which))
            text = f"{word} {self.world.next()}"
            shown = [{"id": after, "role": "assistant", "parts": []}] if after and seen else []
            said = _message(f"m{text if instead is None else instead}", text)
            body = {"id": talk, "trigger": "regenerate-message", "messages": [*shown, said]}
            status, run_id, answer = await self.world.servers[one].send("/ai-sdk/clerk", body)
            assert status in (None, 200, 409, 503), answer
            if status == 200:
                self.world.remember(run_id, text)
            assert times_said(self.world.shared._runs, text) <= (status != 409)

        await asyncio.gather(posts(which), *([posts(1 - which)] if both else []))
        for run_id in {*self.world.shared._runs} - before:
            (first, *_) = self.world.shared._runs[run_id]
            if isinstance(first.messages[-1], UserMessage):
                self.world.anew[run_id] = after, f"talk {instead}"


TestPosts = Posts.TestCase
TestPosts.settings = settings(max_examples=deep(60), stateful_step_count=20, deadline=None)
