"""Evals: traces and what people think of them, evals that a model wrote, and the jobs that write and execute them."""
