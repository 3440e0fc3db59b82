"""Commands for what can be measured: models, data sets, benchmarks."""
