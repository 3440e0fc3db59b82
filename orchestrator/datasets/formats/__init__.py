"""One module per source format: each reads a public file and yields problems with their position in the file."""
