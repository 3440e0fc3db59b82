"""Benchmarks of the sandbox: ratios within one run on one machine, never a timed test."""
