"""Simulated time is that of the thread that simulates."""

import random
import secrets
import time
from random import Random
from threading import Thread

from sim_clock import EPOCH, Timeline, in_time_of, simulated_time


def test_a_server_that_another_test_left_running_keeps_the_real_time_and_its_chances() -> None:
    before, wall = time.monotonic(), time.time()
    found: list[tuple[float, float, int, float]] = []

    def looks() -> None:
        time.sleep(0.001)
        found.append((time.monotonic(), time.time(), len(secrets.token_hex(4)), random.uniform(1.0, 2.0)))

    with simulated_time():
        with in_time_of(Timeline(Random(1))):
            assert (time.monotonic(), time.time()) == (0.0, EPOCH)
            thread = Thread(target=looks)
            thread.start()
            thread.join()
        # Between two worlds, too.
        thread = Thread(target=looks)
        thread.start()
        thread.join()
    for monotonic, at, length, chance in found:
        assert monotonic > before
        assert wall <= at < wall + 3600
        assert (length, 1.0 <= chance <= 2.0) == (8, True)
    assert len(found) == 2
