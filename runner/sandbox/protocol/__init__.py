"""What crosses the boundary of the sandbox: messages and values, and how both are read."""
