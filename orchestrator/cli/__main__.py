"""`python -m orchestrator.cli`: the `benchyard` command where only the interpreter is known."""

from orchestrator.cli.entry import main

main()
