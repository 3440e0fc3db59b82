"""What runners' SDKs call: every model call of every run, once, within budget, at the rate the provider allows.

The edge is `router`; `desk` carries calls to their end and keeps the ledger; `sender` makes the tries; `wires` know the
providers' protocols; everything that decides (`limiter`, `retry`, `prices`, `providers`) is pure or has its time given.
"""
