"""Bring a database to the newest schema. Safe to repeat, and to run from several processes at once."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config

MIGRATIONS = Path(__file__).parent / "migrations"


def alembic_config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["url"] = url
    return config


def migrate(url: str) -> None:
    """Apply what is missing, each migration in a transaction of its own: killed half-way, it resumes."""
    command.upgrade(alembic_config(url), "head")


def check(url: str) -> None:
    """Fail when the tables in the code and the migrations differ."""
    command.check(alembic_config(url))
