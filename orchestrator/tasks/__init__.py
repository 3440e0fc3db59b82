"""Command benchmarks on machines that have their own task runner: a small protocol in plain JSON."""
