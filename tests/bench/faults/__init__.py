"""The faults to survive, F1 to F25, carried out for real: real engine, both databases, random moments, many times."""
