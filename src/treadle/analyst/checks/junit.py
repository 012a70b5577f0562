"""JUnit XML: a run of checks as build servers, and what collects test results, read it.

A test suite for the file, a test case for each check and measure. A failed check has a `failure`, one that could not be
run an `error`, and one that warns says so in its `system-out`: the format knows no warnings. Written in the shape that
Jenkins and GitLab accept (https://github.com/testmoapp/junitxml).
"""

import re
from xml.etree.ElementTree import Element, SubElement, tostring

from treadle.analyst.checks.verdict import Report, Verdict

# What XML 1.0 allows besides: https://www.w3.org/TR/xml/#charsets
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report) -> bytes:
    """Returns a run as JUnit XML, in UTF-8."""
    counts = report.counted()
    figures = {
        "name": _plain(str(report.file)),
        "tests": str(len(report.verdicts)),
        "failures": str(counts["failed"]),
        "errors": str(counts["not_run"]),
        "time": f"{report.seconds:.3f}",
    }
    suites = Element("testsuites", figures)
    stamp = report.started.replace(tzinfo=None).isoformat(timespec="seconds")
    suite = SubElement(suites, "testsuite", figures | {"skipped": "0", "timestamp": stamp})
    for verdict in report.verdicts:
        _case(suite, verdict)
    if report.unkept:
        SubElement(suite, "system-err").text = _plain(report.unkept)
    written: bytes = tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _case(suite: Element, verdict: Verdict) -> None:
    case = SubElement(
        suite,
        "testcase",
        {
            "classname": _plain(verdict.check),
            "name": _plain(verdict.measure or verdict.check),
            "time": f"{verdict.seconds:.3f}",
        },
    )
    more = "\n".join((verdict.sentence, *verdict.remarks))
    if verdict.outcome in ("failed", "not_run"):
        kind = "failure" if verdict.outcome == "failed" else "error"
        attributes = {"message": _plain(verdict.sentence), "type": verdict.outcome}
        SubElement(case, kind, attributes).text = _plain(more)
    else:
        warned = "warning: " if verdict.outcome == "warned" else ""
        SubElement(case, "system-out").text = _plain(warned + more)


def _plain(text: str) -> str:
    """The text without characters that XML cannot hold, not even escaped."""
    return _FORBIDDEN.sub("\ufffd", text)
