"""Listening: the socket of a command that serves, or why there is none."""

import os
import socket

import click


def listening_on(host: str, port: int, option: str) -> socket.socket:
    """A socket that listens there.

    Raises:
        click.UsageError: it cannot; names the option that says where.
    """
    family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    # Of one that does not say that it is TCP asyncio lets small writes wait for acknowledgements, for 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
        return listening
    except OSError as error:
        listening.close()
        raise click.UsageError(
            f"cannot listen on {host} port {port}: {error.strerror or error}. Name another with {option}"
        ) from error
