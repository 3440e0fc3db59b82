"""Runs untrusted programs under limits and reports how they ended; it never learns the right answer."""
