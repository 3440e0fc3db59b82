"""Metrics of runs for Prometheus: durations, outcomes, tokens, cost and scores."""
