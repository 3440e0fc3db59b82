"""What the kernel enforces: system call filters, Landlock, control groups, process trees."""
