"""Pods as real clusters described them, one file per state, and the scenes that bring a cluster into each state."""
