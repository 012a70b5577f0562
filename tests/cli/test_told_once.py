"""A run that failed is told by its command, and not a second time by the log that nobody has set up."""


def test_why_a_run_failed_is_told_once(treadle):
    done = treadle("ask", "hi", "--model", "local:m@http://127.0.0.1:9/v1", TREADLE_FORBID_MODELS="0")
    assert done.code != 0
    assert "cannot connect to http://127.0.0.1:9/v1" in done.err
    assert "failed: connection_failed" not in done.err
