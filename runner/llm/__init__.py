"""Asks models through the gateway with the providers' own SDKs; each SDK is imported in one module only."""
