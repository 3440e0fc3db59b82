"""What the orchestrator is told of an attempt."""
