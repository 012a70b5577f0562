"""The kernel: a run as a fold over its events. Pure: it imports nothing above it, and has no clock, file or network."""
