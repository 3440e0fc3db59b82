"""The contract between runner and orchestrator: every body that crosses the wire between them, and nothing else.

A leaf: pydantic and the standard library only, and all of `runner` that `orchestrator` imports. Both sides ignore fields
they do not know; a version that does not match is refused at claim.
"""
