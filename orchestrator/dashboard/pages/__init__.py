"""The pages: each module reads what its page needs and hands a view model to a template."""
