"""The contract between runner and orchestrator: every message body they exchange, and nothing else.

It imports only pydantic and the standard library, and it is the only part of `runner` that `orchestrator` imports. Both
sides ignore unknown fields; the orchestrator refuses a claim with another contract version.
"""
