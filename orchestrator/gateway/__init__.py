"""The gateway: every model call of every run goes through it, once, within budget, at the rate the provider allows.

`edge` receives the request; `coordinator` gives each call one `attempt`, the only writer of the call's row in `ledger`;
`pacing` decides when the call may go, `upstream` sends it, and `protocols` read and write the providers' formats.
"""
