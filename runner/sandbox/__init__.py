"""Runs untrusted programs under limits and says how they ended; it never learns what the right answer is."""
