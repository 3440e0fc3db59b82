from tests.service.schedules.fixtures import service

__all__ = ["service"]
