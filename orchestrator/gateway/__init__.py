"""What runners' SDKs call: every model call of every run, once, within budget, at the rate the provider allows.

`edge` takes the request; `coordinator` gives the call one `attempt`, which alone drives its row in `ledger`; `pacing` says
when it may go, `upstream` sends it, `protocols` read and write the providers' formats.
"""
