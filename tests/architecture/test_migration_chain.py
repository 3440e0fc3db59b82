"""Migrations form one chain, numbered as their files are: two heads would keep the service from starting."""

from __future__ import annotations

from alembic.script import ScriptDirectory

from orchestrator.db.migrate import alembic_config


def test_one_chain() -> None:
    scripts = ScriptDirectory.from_config(alembic_config("sqlite://"))
    assert len(scripts.get_heads()) == 1
    chain = list(scripts.walk_revisions())
    numbers = [f"{number:04}" for number in range(len(chain), 0, -1)]
    assert [script.revision for script in chain] == numbers
    assert all(script.path.rpartition("/")[2].startswith(script.revision) for script in chain)
