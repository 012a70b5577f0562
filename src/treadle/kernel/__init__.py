"""The kernel: a run as a fold over its events. Pure: it imports nothing above it, and has no clock, file or network.

The machine: `fold.py` has its table and its rules; `run_changes.py`, `step_changes.py` and `call_changes.py` say what
changes with an event, `reply.py` what becomes of a reply's calls; `state.py` and `step.py` are what they change;
`decide.py` says what is next, `stop.py` within which limits, and why it ends. What it speaks of: `messages.py`,
`events.py`, `calls.py`. What it reckons with: `accounts.py`, `money.py`, `history.py`, `log.py`, `names.py`.
"""
