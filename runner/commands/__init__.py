"""Command benchmarks: run a program of the user's image repeatedly and measure it with the kernel's counters."""
