"""Command benchmarks: a program of the user's image is run again and again, and measured by the kernel's figures."""
