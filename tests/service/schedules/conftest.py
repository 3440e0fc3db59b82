from tests.service.schedules.fixtures import service, world

__all__ = ["service", "world"]
