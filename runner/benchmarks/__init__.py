"""One adapter per benchmark format: how to read a record, ask the model, and extract and judge its answer."""
