"""`treadle runs export --otlp`, to a receiver on loopback that speaks OTLP."""

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from needs import need

need("opentelemetry.exporter.otlp.proto.http", "TREADLE_REQUIRE_OTEL")


class Receiver:
    """Keeps the spans that it is sent; answers with `status`."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.paths: list[str] = []
        self.status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

                body = self.rfile.read(int(self.headers["content-length"]))
                body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
                receiver.paths.append(self.path)
                if receiver.status == 200:
                    sent = ExportTraceServiceRequest.FromString(body)
                    receiver.spans += [
                        one for of in sent.resource_spans for each in of.scope_spans for one in each.spans
                    ]
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.stop()


def test_runs_are_sent_and_sent_again_as_the_same(treadle: Any, receiver: Receiver) -> None:
    for _ in range(2):
        treadle("ask", "look", "--model", "script:answers", "--tools", "script.py")
    first = treadle("runs", "export", "last", "--otlp", receiver.url)
    assert (first.code, first.out) == (0, ""), first.err
    assert "2 spans of 1 run sent" in first.err
    assert receiver.paths == ["/v1/traces"]
    once = [(span.name, span.trace_id, span.span_id) for span in receiver.spans]
    assert [name for name, _, _ in once] == ["chat scripted", "invoke_agent treadle"]
    receiver.spans.clear()
    every = treadle("runs", "export", "--all", "--otlp", f"{receiver.url}/v1/traces")
    assert "4 spans of 2 runs sent" in every.err
    again = [(span.name, span.trace_id, span.span_id) for span in receiver.spans]
    assert set(once) < set(again)
    assert "The answer" not in "".join(str(span) for span in receiver.spans)
    assert treadle("runs", "export", "last", "--otlp", receiver.url, "--content").code == 0
    assert "The answer is 42." in str(receiver.spans[-1])


def test_the_environment_may_say_where(treadle: Any, receiver: Receiver) -> None:
    treadle("ask", "look", "--model", "script:answers")
    said = treadle("runs", "export", "--otlp", "last", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    assert (said.code, len(receiver.spans)) == (0, 2), said.err


def test_what_cannot_be_sent_is_said(treadle: Any, receiver: Receiver) -> None:
    treadle("ask", "look", "--model", "script:answers")
    receiver.status = 400
    refused = treadle("runs", "export", "last", "--otlp", receiver.url)
    assert refused.code == 2
    assert "nothing, or not all, was sent" in refused.err
    for wrong in ("ftp://x", "http://"):
        assert "is no address" in treadle("runs", "export", "last", "--otlp", wrong).err
    assert "--content goes with --otlp" in treadle("runs", "export", "last", "--content").err
