"""The items of a benchmark run: fetching problems, asking the model, judging and reporting."""
