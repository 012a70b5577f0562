"""`treadle models NAME`: what a model can do, as far as it is known, with no key and no call."""

import json


def test_what_a_model_can_do_is_shown(treadle):
    done = treadle("models", "openai:gpt-5")
    assert (done.code, done.err) == (0, "")
    assert "400,000" in done.out
    assert "not known" in done.out
    found = json.loads(treadle("models", "--json", "openai/gpt-5").out)
    assert found["model"] == "openai:gpt-5"
    assert (found["context_window"], found["output"], found["price_known"]) == (400_000, "native", True)
    assert found["thinking"] is None


def test_what_nobody_knows_is_not_told_as_no(treadle):
    found = json.loads(treadle("models", "--json", "local:mine@http://127.0.0.1:9/v1").out)
    assert (found["context_window"], found["prefix_cache"], found["price_known"]) == (None, None, False)


def test_a_name_that_is_none_is_told(treadle):
    done = treadle("models", "gpt-4o")
    assert (done.code, done.out) == (2, "")
    assert "did you mean 'openai:gpt-4o'" in " ".join(done.err.split())
    assert json.loads(treadle("models", "--json", "offline").out)["thinking"] is False


def test_a_model_with_its_tools_in_text_needs_no_key_to_be_told_of(treadle):
    found = json.loads(treadle("models", "--json", "text:tags:openai:gpt-5").out)
    assert (found["model"], found["context_window"]) == ("text:tags:openai:gpt-5", 400_000)
    assert json.loads(treadle("models", "--json", "text:offline").out)["model"] == "text:json:offline"
