"""Context policies as pure functions: what they take away, what they never touch, and when they act."""

import json
from itertools import pairwise

import msgspec
import pytest
from histories import chains, exchange, histories, history, notices, policies, tokens_of
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rules import valid
from worlds import examples

from treadle import Misuse
from treadle.context.policies import ClearToolResults, Facts, KeepFirstAndRecent, ShortenResult, Summarise
from treadle.context.stubs import reference
from treadle.context.trimming import last_exchange
from treadle.kernel.messages import AssistantMessage, Image, SystemMessage, Text, ToolCall, ToolMessage, UserMessage

FACTS = st.builds(Facts, fixed=st.sampled_from([0, 500]), target=st.sampled_from([None, None, 0, 900]))


def applied(chain, messages, tokens, facts):
    """What a chain makes of the messages, and the tokens then."""
    for policy in chain:
        edit = policy.edit(messages, tokens, facts)
        if edit is not None:
            messages, tokens = list(edit.messages), edit.after
    return messages, tokens


def name_of(message):
    return reference(message.call_id, message.content)


def spoken(message):
    return isinstance(message, UserMessage) and not message.left_out


@examples(150)
@given(histories(), chains, FACTS, st.data())
def test_any_chain_on_any_history_keeps_what_must_stay(messages, chain, facts, data):
    valid(messages, apart=False)
    said = [message for message in messages if spoken(message)]
    facts = msgspec.structs.replace(
        facts, pinned=data.draw(st.lists(st.sampled_from(said), max_size=2)) if said else ()
    )
    before, tokens = list(messages), tokens_of(messages, facts.fixed)
    after, count = applied(chain, messages, tokens, facts)
    assert messages == before
    assert count <= tokens
    valid(after, apart=False)
    assert [one for one in after if isinstance(one, SystemMessage)] == before[: isinstance(before[0], SystemMessage)]
    if said:
        assert next(one for one in after if spoken(one)) == said[0]
    for message in facts.pinned:
        assert message in after
    last = before[last_exchange(before) :]
    kept = after[len(after) - len(last) :]
    for one, other in zip(last, kept, strict=True):
        assert one == other or (
            isinstance(other, ToolMessage) and other.whole == one.content and other.call_id == one.call_id
        )


@examples(100)
@given(histories(), policies, FACTS)
def test_an_edit_counts_what_is_left_and_a_second_one_finds_nothing_to_do(messages, policy, facts):
    tokens = tokens_of(messages, facts.fixed)
    edit = policy.edit(messages, tokens, facts)
    if edit is None:
        return
    assert edit.before == tokens
    assert edit.after < tokens
    assert abs(edit.after - tokens_of(edit.messages, facts.fixed)) <= 1
    assert policy.edit(edit.messages, edit.after, facts) is None
    valid(list(edit.messages), apart=False)


@examples(80)
@given(histories(), policies, FACTS, st.text(min_size=1, max_size=200))
def test_a_summary_keeps_what_must_stay(messages, policy, facts, text):
    tokens = tokens_of(messages, facts.fixed)
    policy = policy if isinstance(policy, Summarise) else Summarise("a model", 1000, 400, max_tokens=100)
    covered = policy.covers(messages, tokens, facts)
    edit = None if covered is None else policy.summarised(covered, text, facts)
    if edit is None:
        return
    valid(list(edit.messages), apart=False)
    assert sum(found.summary for found in notices(edit.messages)) == 1
    last = messages[last_exchange(messages) :]
    assert list(edit.messages[len(edit.messages) - len(last) :]) == last
    again = policy.covers(edit.messages, edit.after, facts)
    assert again is None or again.covered[0] != edit.messages[0]


@pytest.mark.parametrize("policy", [KeepFirstAndRecent(9000, 5000), ClearToolResults(9000, 5000, keep=2)])
def test_hysteresis_it_acts_at_the_high_mark_and_then_not_before_it_is_reached_again(policy):
    messages, acted = history(0), []
    for i in range(24):
        messages = [*messages, *exchange(f"c{i}", f"result {i}: " + "word " * 600)]
        tokens = tokens_of(messages)
        edit = policy.edit(messages, tokens, READS)
        assert (edit is not None) == (tokens >= 9000)
        if edit is not None:
            messages = list(edit.messages)
            assert tokens_of(messages) <= 5000 + 1
            acted.append(i)
    each = tokens_of(exchange("c0", "result 0: " + "word " * 600))
    gaps = [b - a for a, b in pairwise(acted)]
    assert len(acted) > 2
    assert min(gaps) >= 4000 // each


def test_keep_first_and_recent_says_how_much_is_gone_and_adds_up():
    policy, messages = KeepFirstAndRecent(1000, 500), history(20)
    edit = policy.edit(messages, tokens_of(messages), Facts())
    assert [type(one) for one in edit.messages[:3]] == [SystemMessage, UserMessage, UserMessage]
    assert edit.messages[2].left_out == len(messages) - (len(edit.messages) - 1)
    longer = [*edit.messages, *history(20)[2:]]
    second = policy.edit(longer, tokens_of(longer), Facts())
    assert second.messages[2].left_out == 40 + len(messages) - (len(second.messages) - 1)
    assert notices(second.messages) == [second.messages[2]]
    assert "earlier messages were left out here" in second.messages[2].text


def test_shares_are_of_the_window_and_do_nothing_where_it_is_unknown():
    messages = history(20)
    tokens = tokens_of(messages)
    assert KeepFirstAndRecent().edit(messages, tokens, Facts()) is None
    assert KeepFirstAndRecent().edit(messages, tokens, Facts(window=tokens * 2)) is None
    edit = KeepFirstAndRecent().edit(messages, tokens, Facts(window=tokens))
    assert tokens // 4 < edit.after <= tokens // 2


def test_a_cleared_result_says_what_was_there_and_how_to_get_it_back():
    messages = history(8)
    edit = ClearToolResults(500, 400, keep=3).edit(messages, tokens_of(messages), Facts(readable=True))
    results = [one for one in edit.messages if isinstance(one, ToolMessage)]
    told = msgspec.json.decode(results[0].text)
    assert told["cleared"] is True
    assert told["tool"] == "look"
    assert told["characters"] == len(messages[3].text)
    assert told["beginning"].startswith("result 0: word")
    assert f'read_result with call_id "{name_of(messages[3])}"' in told["message"]
    assert [one.whole is not None for one in results] == [True] * 5 + [False] * 3
    unread = ClearToolResults(500, 400).edit(messages, tokens_of(messages), READS)
    assert "Call the tool again" in unread.messages[3].text


def test_small_results_and_those_of_the_last_exchange_are_not_cleared():
    messages = [*history(5, "ok"), *exchange("last", "word " * 400)]
    assert ClearToolResults(100, 50, keep=0).edit(messages, tokens_of(messages), Facts()) is None


def test_a_shortened_result_has_its_head_its_tail_and_where_to_read_on():
    text = "".join(f"line {i}\n" for i in range(5000))
    messages = history(0) + exchange("big", text)
    edit = ShortenResult(1000).edit(messages, tokens_of(messages), Facts(readable=True))
    short = edit.messages[-1].text
    assert short.startswith("line 0\nline 1\n")
    assert short.endswith("line 4999\n")
    assert f'call_id "{name_of(messages[-1])}" and offset 1' in short
    head = short.split("\n[treadle: ")[0]
    assert f"offset {len(head)}." in short
    assert 900 < tokens_of(edit.messages[-1:]) < 1200
    assert edit.messages[:-1] == messages[:-1]


def test_shortening_looks_only_at_what_is_there_since_the_last_call():
    messages = history(0) + exchange("big", "x" * 50_000) + exchange("small", "ok")
    assert ShortenResult(1000).edit(messages, tokens_of(messages), Facts(since=4)) is None
    assert ShortenResult(1000).edit(messages, tokens_of(messages), Facts(since=2)) is not None


def test_an_image_stays_when_the_text_beside_it_is_shortened():
    messages = history(0) + exchange("big", "x")
    messages[-1] = ToolMessage("big_0", "look", (Text("y" * 40_000), Image(b"png"), Text("z" * 40_000)))
    edit = ShortenResult(1000).edit(messages, tokens_of(messages), Facts())
    kinds = [type(part) for part in edit.messages[-1].content]
    assert kinds == [Text, Image]
    assert edit.messages[-1].text.startswith("yyy")
    assert edit.messages[-1].text.endswith("zzz")


def test_results_orphaned_by_trimming():
    """A call and its results go together or stay together, however the marks fall."""
    messages = history(0)
    for i in range(12):
        messages += exchange(f"c{i}", "a" * 90 * i, "b" * 300, "c" * 40)
    lengths = set()
    for low in range(0, tokens_of(messages), 40):
        edit = KeepFirstAndRecent(tokens_of(messages), low).edit(messages, tokens_of(messages), Facts())
        valid(list(edit.messages))
        lengths.add(len(edit.messages))
    assert len(lengths) > 10


def test_a_summary_that_swallows_the_open_tool_call():
    """The last exchange is not covered by a summary, whatever is said after it and however little room there is."""
    messages = [*history(6, "word " * 1000), *exchange("open", "word " * 2000), UserMessage("a nudge")]
    covered = Summarise("a model", 100, 50).covers(messages, tokens_of(messages), Facts())
    ids = {call.id for one in covered.covered if isinstance(one, AssistantMessage) for call in one.calls}
    assert ids == {f"c{i}_0" for i in range(6)}
    edit = Summarise("a model", 100, 50).summarised(covered, "six looks", Facts())
    assert list(edit.messages[-3:]) == messages[-3:]
    valid(list(edit.messages))


def test_a_second_summary_covers_the_first():
    policy = Summarise("a model", 1000, 500, max_tokens=50)
    messages, facts = history(20), Facts(reads={"look"})
    first = policy.summarised(policy.covers(messages, tokens_of(messages), facts), "THE FIRST", facts)
    longer = [*first.messages, *history(20)[2:]]
    covered = policy.covers(longer, tokens_of(longer), facts)
    assert "THE FIRST" in covered.covered[0].text
    second = policy.summarised(covered, "BOTH", facts)
    assert [one.text.split("\n\n")[-1] for one in notices(second.messages)] == ["BOTH"]
    assert second.messages[2].left_out == 40 + len(messages) - (len(second.messages) - 1)


def test_a_summary_is_not_left_out_by_the_policy_after_it():
    policy = Summarise("a model", 1000, 500, max_tokens=50)
    messages = history(20)
    first = policy.summarised(policy.covers(messages, tokens_of(messages), Facts()), "THE SUMMARY", Facts())
    longer = [*first.messages, *history(20)[2:]]
    edit = KeepFirstAndRecent(1000, 500).edit(longer, tokens_of(longer), Facts())
    assert any("THE SUMMARY" in one.text for one in edit.messages if isinstance(one, UserMessage))


@pytest.mark.parametrize(
    "make",
    [
        lambda: KeepFirstAndRecent(100, 100),
        lambda: KeepFirstAndRecent(0.5, 0.8),
        lambda: KeepFirstAndRecent(100, 0.5),
        lambda: KeepFirstAndRecent(1.5, 0.5),
        lambda: KeepFirstAndRecent("many", 1),
        lambda: ClearToolResults(100, 50, keep=-1),
        lambda: ClearToolResults(True, False),
        lambda: ShortenResult(0),
        lambda: Summarise(None, 100, 50, max_tokens=0),
    ],
)
def test_marks_that_cannot_be_right_are_refused_at_once(make):
    with pytest.raises(Misuse, match="takes"):
        make()


def paying(number, result="paid", is_error=False, tool="pay", arguments=None):
    call = ToolCall(f"p{number}", tool, arguments or f'{{"invoice": {number}}}')
    return [AssistantMessage((Text(f"step {number}"), call)), ToolMessage(call.id, tool, result, is_error)]


def told(messages):
    (notice,) = notices(messages)
    return notice.text.split("\n")


READS = Facts(reads={"look"})


@pytest.mark.parametrize("summarises", [False, True])
def test_calls_that_may_have_changed_something_are_named_where_they_are_left_out(summarises):
    """A model that no longer saw that it had paid paid again."""
    messages = [*history(3), *paying(1), *paying(2, "no money", True), *history(20)[2:]]
    if summarises:
        policy = Summarise("a model", 1500, 1000, max_tokens=50)
        edit = policy.summarised(policy.covers(messages, tokens_of(messages), READS), "It was paid.", READS)
    else:
        edit = KeepFirstAndRecent(1500, 1000).edit(messages, tokens_of(messages), READS)
    lines = told(edit.messages)
    assert lines[-2:] == ['- pay({"invoice": 1})', '- pay({"invoice": 2}), which was answered with an error']
    assert "look" not in "".join(lines)
    # The notice's own sentence comes on top.
    assert tokens_of(edit.messages) <= 1050


@pytest.mark.parametrize("secret", ['hun"ter', "hun\\ter", "h\u00fcnter"])
def test_what_is_redacted_is_not_named_however_json_writes_it(secret):
    """The arguments went through as the text of their JSON, in which a secret may be written otherwise."""
    facts = replace(READS, redact=lambda text: text.replace(secret, "[secret]"))
    messages = [*history(3), *paying(1, arguments=json.dumps({"password": secret})), *history(20)[2:]]
    edit = KeepFirstAndRecent(1500, 1000).edit(messages, tokens_of(messages), facts)
    assert told(edit.messages)[-1] == '- pay({"password": "[secret]"})'


def test_what_an_earlier_notice_names_is_taken_over_and_the_oldest_are_counted():
    policy = KeepFirstAndRecent(3000, 2000)
    messages = [*history(0), *[one for number in range(60) for one in paying(number, "word " * 100)]]
    first = policy.edit(messages, tokens_of(messages), READS)
    more = [one for number in range(60, 120) for one in paying(number, "word " * 100)]
    second = policy.edit([*first.messages, *more], tokens_of([*first.messages, *more]), READS)
    lines = told(second.messages)
    counted, named = int(lines[3].split()[1]), [line for line in lines if line.startswith("- pay")]
    left = sum(isinstance(one, AssistantMessage) for one in second.messages)
    assert lines[3] == f"- {counted} more, earlier than these"
    assert named[-1] == f'- pay({{"invoice": {119 - left}}})'
    assert counted + len(named) + left == 120
    assert tokens_of(second.messages) <= 2050


def test_a_list_in_a_summary_without_calls_is_no_list_of_calls():
    """Its lines came back as calls not to make again, and a number among them as a count of such."""
    policy = Summarise("a model", 1500, 1000, max_tokens=300)
    messages = [*history(3), *history(20)[2:]]
    said = "What is known:\n- the user lives in Bonn\n- 3 more, earlier than these"
    first = policy.summarised(policy.covers(messages, tokens_of(messages), READS), said, READS)
    longer = [*first.messages, *history(20)[2:]]
    second = policy.summarised(policy.covers(longer, tokens_of(longer), READS), "all", READS)
    assert told(second.messages)[2:] == ["all"]


def test_what_was_said_in_a_summary_names_no_call():
    policy = Summarise("a model", 1500, 1000, max_tokens=300)
    messages = [*history(3), *paying(1), *history(20)[2:]]
    first = policy.summarised(policy.covers(messages, tokens_of(messages), READS), "- one\n- two", READS)
    longer = [*first.messages, *history(20)[2:]]
    second = policy.summarised(policy.covers(longer, tokens_of(longer), READS), "all", READS)
    assert told(second.messages)[5:] == ['- pay({"invoice": 1})']


def test_a_call_is_named_on_a_line_without_what_is_redacted_and_not_at_length():
    facts = Facts(reads={"look"}, redact=lambda text: text.replace("4711" * 60, "[KEY]"))
    long = '{"key": "' + "4711" * 60 + '",\n"note": "' + "x" * 500 + '"}'
    messages = [*history(3), *paying(1, arguments=long), *history(20)[2:]]
    edit = KeepFirstAndRecent(2500, 2000).edit(messages, tokens_of(messages), facts)
    (line,) = [one for one in told(edit.messages) if one.startswith("- ")]
    assert line.startswith('- pay({"key": "[KEY]", "note": "xxx')
    assert "4711" not in line
    assert len(line) < 210
