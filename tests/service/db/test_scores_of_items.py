"""Results of the revision before are pass or fail and stay so; their archives keep their digest."""

from __future__ import annotations

from alembic import command
from sqlalchemy import create_engine, inspect
from sqlalchemy.pool import NullPool
from sqlmodel import Session

from orchestrator.db.migrate import alembic_config, check, migrate
from orchestrator.runs import item_queries
from orchestrator.runs.reports.scores import score_of
from tests.manual_clock import START
from tests.rows import a_model, a_run, an_item
from tests.service.db.test_agents_of_attempts import insert


def test_results_of_the_revision_before_are_pass_or_fail(empty_database_url: str) -> None:
    # Given a database of the revision before, with a passed and a failed item
    command.upgrade(alembic_config(empty_database_url), "0028")
    engine = create_engine(empty_database_url, poolclass=NullPool)
    run = a_run(items=2, now=START, status="completed")
    insert(engine, "models", a_model(id=1))
    insert(engine, "container_runs", run, task=b"", fruitless=0)
    insert(engine, "item_results", an_item(run.id, "p0"), data=b"")
    insert(engine, "item_results", an_item(run.id, "p1", outcome="wrong_answer", position=1), data=b"")
    # When it is upgraded
    migrate(empty_database_url)
    check(empty_database_url)
    # Then neither has a value, and the score is a pass rate
    with Session(engine) as session:
        verdicts = item_queries.both_verdicts(session, run.id)
    assert [verdict[5] for verdict in verdicts] == [None, None]
    score = score_of(verdicts)
    assert score is not None
    assert (score["estimate"], "metric" in score) == (0.5, False)
    # And the way back is open
    command.downgrade(alembic_config(empty_database_url), "0028")
    assert "score" not in {column["name"] for column in inspect(engine).get_columns("item_results")}
