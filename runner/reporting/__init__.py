"""Reports an attempt to the orchestrator."""
