"""The one purse: what costs tokens or money is reckoned, reserved, settled and told here. No other code knows a price.

`reckoning.py` says what a call can take at most, and `dearest.py` what that costs; `claims.py` reserves it from every
run above before the call, and gives back what it did not need; `arrived.py` says what has come of a reply, so what is
paid for where it breaks off; `bill.py` adds up what the attempts at one thing took. What a run has taken stands in its
accounts, in the kernel; `so_far.py` tells it while the run is under way, and `spending.py` takes it apart (`sheet.py`:
as CSV).
"""
