"""Enforcement by the kernel: system call filters, Landlock, control groups, process trees."""
