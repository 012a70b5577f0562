"""Drivers carry a run's commands out: they do all waiting, clocks, randomness and calls of user code."""
