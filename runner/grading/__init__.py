"""Turns what a program did into a verdict."""
