"""Harness runs: starts another evaluation harness, answers its model calls through the gateway, and reads its results."""
