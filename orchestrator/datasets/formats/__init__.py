"""One module per source format: public file in, problems out, each with its place in the file."""
