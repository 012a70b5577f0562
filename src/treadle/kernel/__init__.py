"""The kernel: a run as a fold over its events. Pure: it imports nothing above it, and knows no clock, file or network."""
