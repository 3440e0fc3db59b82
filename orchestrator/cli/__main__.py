"""`python -m orchestrator.cli`: the `benchyard` command for places that know only the interpreter."""

from orchestrator.cli.entry import main

main()
