"""The one purse: what costs tokens or money is reckoned, reserved, settled and told here. No other code knows a price.

- reckon: `request_size.py` says how many tokens a request has at most, `reckoning.py` what a call can take, within what
  is left, and `dearest.py` what that costs.
- reserve: `claims.py` sets it aside in every run above before the call, and gives back what it did not need. A budget
  (`budget.py`) that runs share has its purses in a ledger (`ledger.py`), which a store keeps (`rows.py`): a file or
  memory (`sqlite_rows.py`), or a database (`postgres_rows.py`, `postgres_tables.py`). On it they draw (`drawing.py`),
  wait for it while others go on (`patience.py`), and to it is told what stands in the journal (`telling.py`,
  `standing.py`).
- settle: `arrived.py` says what has come of a reply, so what is paid for where it breaks off; `bill.py` adds up what
  the attempts at one thing took. What a run has taken stands in its accounts, in the kernel.
- tell: `so_far.py` while a run is under way, and `spending.py` takes it apart (`sheet.py`: as CSV).
"""
