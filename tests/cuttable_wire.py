"""A wire to the PostgreSQL server that can be cut at a chosen moment."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

END = b"COMMIT\x00"
"""What a client says to have its transaction stored."""


class Wire:
    """Passes bytes between a client and the server at `port`, until it is told to cut.

    `cut` is asked of everything that the client says; it may return "before" (the server hears nothing of it),
    "half" (it hears all up to the middle of the transaction's `END`), "after" (it hears it and answers, and the
    answer is lost), "deaf" (it hears nothing of it, and does not hear either that the client has gone) or "" to pass
    it on.
    """

    def __init__(self, port: int) -> None:
        self.cut: Callable[[bytes], str] = lambda said: ""
        self.cuts: list[str] = []
        self._speaks = threading.Event()
        self._speaks.set()
        self._server = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def hush(self) -> None:
        """From now on the server is silent, though it hears everything."""
        self._speaks.clear()

    def speak(self) -> None:
        """It says what it had to say."""
        self._speaks.set()

    def close(self) -> None:
        self._closed = True
        self.speak()
        self._end_all()

    def _end_all(self) -> None:
        for one in (self._listening, *self._sockets):
            _end(one)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._sockets.append(client)
                server = socket.create_connection(("127.0.0.1", self._server))
                self._sockets.append(server)
                if self._closed:
                    # It was being made while all others were ended.
                    self._end_all()
                    return
                mute = threading.Event()
                for way in (self._forth, self._back):
                    threading.Thread(target=way, args=(client, server, mute), daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket, mute: threading.Event) -> None:
        with suppress(OSError):
            while said := client.recv(1 << 20):
                how = self.cut(said)
                self.cuts += [how] if how else []
                match how:
                    case "" | "after":
                        if how:
                            mute.set()
                        server.sendall(said)
                    case "half":
                        # Half of the bytes may hold the whole end: how many statements arrive together is chance.
                        server.sendall(said[: said.index(END) + len(END) // 2])
                        break
                    case "before":
                        break
                    case "deaf":
                        _end(client)
                        return
        _end(client)
        _end(server)

    def _back(self, client: socket.socket, server: socket.socket, mute: threading.Event) -> None:
        with suppress(OSError):
            while told := server.recv(1 << 20):
                self._speaks.wait()
                if not mute.is_set():
                    client.sendall(told)
                # The last that it says of a pipeline: ready, in no transaction.
                elif told.endswith(b"Z\x00\x00\x00\x05I"):
                    break
        _end(client)
        _end(server)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
