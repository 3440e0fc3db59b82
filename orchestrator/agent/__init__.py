"""The agent: runs containers on another machine for an orchestrator. It depends only on the REST API and an engine."""
