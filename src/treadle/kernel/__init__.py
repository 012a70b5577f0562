"""The kernel: a run as a fold over its events. Pure; it imports nothing above it and touches no clock, file or network."""
