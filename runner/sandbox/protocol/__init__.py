"""What crosses the border of the sandbox: messages, values, and how both are read."""
