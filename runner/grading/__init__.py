"""From what a program did to a verdict."""
