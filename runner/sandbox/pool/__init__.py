"""The runner's side of the sandbox: workers that carry out one job at a time, and the result of each."""
