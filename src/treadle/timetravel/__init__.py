"""Time travel: runs replayed from their journals, forked at any step, held against each other, watched and counted.

A run is its events, so that all of this follows from them: `replay.py` decides anew what a run's agent decided,
`forking.py` begins a run with the first steps of another, `parting.py` says where two runs part, `waterfall.py` says
where the time went, and `statistics.py` adds up many runs.
"""
