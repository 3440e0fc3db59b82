"""What Prometheus is told of runs: durations, outcomes, tokens, cost and scores."""
