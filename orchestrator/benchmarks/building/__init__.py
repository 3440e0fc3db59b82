"""Makes a pack of a benchmark's description and its records."""
