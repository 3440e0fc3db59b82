"""One adapter per benchmark format: what a record means, how the model is asked, how its answer is read and judged."""
