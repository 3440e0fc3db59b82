"""Evals in the runner: having a model write one, checking it, and running it on traces."""
