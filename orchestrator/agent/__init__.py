"""The program on another machine that runs containers for an orchestrator. It knows the REST API and an engine."""
