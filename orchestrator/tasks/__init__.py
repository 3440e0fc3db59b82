"""Command benchmarks on machines with a task runner of their own: a small protocol in plain JSON."""
