"""The one door for tool calls: admit, start, run, record, react. No other code calls a tool or starts a sub-run.

`door.py` says in which order; `admission.py` who may come in, for which `made.py` counts; `execution.py` what it does
with those that may: a function is called, or a run below this one is driven (`subrun.py`); `reaction.py` what the
application makes of the result; `early.py` lets calls in while the reply that makes them is still arriving.
"""
