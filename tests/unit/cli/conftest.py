from tests.unit.cli.command_line import benchyard, clean_environment

__all__ = ["benchyard", "clean_environment"]
