"""Sessions of users and tokens of theirs: whatever is made up opens nothing, and nobody can do more than they may now."""

from __future__ import annotations

import secrets
from datetime import timedelta

import httpx
import pytest
from sqlmodel import Session

from orchestrator.accounts.tables import Membership, User
from orchestrator.sign_in.sessions import ROTATE_AFTER, STILL_OPENS
from tests.manual_clock import START
from tests.served import Service

pytestmark = pytest.mark.anyio


async def sign_in(service: Service, role: str = "member") -> tuple[int, str]:
    def make(session: Session) -> User:
        user = User(issuer="https://id.example", subject=secrets.token_hex(4), name="Ada", created_at=START)
        session.add(user)
        session.flush()
        session.add(Membership(user_id=user.id or 0, workspace_id=1, role=role, created_at=START))
        return user

    user = await service.services.db.write(make)
    return user.id or 0, await service.services.accounts.sessions.begin(user, None, agent="test", address="")


def window(service: Service, cookie: str) -> httpx.AsyncClient:
    given = {b"sec-fetch-site": b"same-origin", b"cookie": b"benchyard_session=" + cookie.encode()}
    return httpx.AsyncClient(base_url=service.url, headers=given, timeout=20)


async def test_what_is_made_up_opens_nothing(shared_service: Service) -> None:
    _, cookie = await sign_in(shared_service)
    seal = await shared_service.services.authority.session_for(await _owner(shared_service))
    real = [cookie, seal]
    fuzzed = ["", "u.", "u." + "x" * 43, "0.0.0.0", "1.2.3.4", "0.9999999999999999.1.x", "u.%00", "a" * 5000, "٣.٣.٣.x"]
    for each in real:
        at = secrets.randbelow(len(each))
        fuzzed += [each[:-1], each + "x", each[:at] + ("A" if each[at] != "A" else "B") + each[at + 1 :], each.upper()]
    fuzzed += [seal.replace(".1.", ".2.", 1)]  # another workspace
    for given in fuzzed:
        async with window(shared_service, given) as client:
            assert (await client.get("/api/account")).status_code == 401, given
        bearer = {"authorization": b"Bearer x" + given.encode()}
        assert (await shared_service.stranger.get("/api/account", headers=bearer)).status_code == 401, given
    for given in real:
        async with window(shared_service, given) as client:
            assert (await client.get("/api/account")).status_code == 200


async def _owner(service: Service):  # type: ignore[no-untyped-def]
    from tests.served import TOKEN

    return await service.services.authority.by_token(TOKEN)


async def test_a_token_never_does_more_than_its_maker_may_now(service: Service) -> None:
    user_id, cookie = await sign_in(service, "member")
    async with window(service, cookie) as person:
        too_much = await person.post("/api/account/tokens", json={"name": "a", "scope": "admin"})
        assert (too_much.status_code, too_much.json()["code"]) == (403, "FORBIDDEN")
        assert (await person.post("/api/account/tokens", json={"name": "a", "scope": "agent"})).status_code == 403
        made = (await person.post("/api/account/tokens", json={"name": "a", "scope": "run"})).json()
    holder = {"authorization": f"Bearer {made['token']}"}
    run = {"model_id": "demo-strong", "sample_size": 1}
    assert (await service.stranger.post("/api/container-runs", json=run, headers=holder)).status_code == 202
    # A token has no account: it makes no other tokens and ends no sessions.
    assert (await service.stranger.post("/api/account/tokens", json={"name": "b"}, headers=holder)).status_code == 403
    # The maker becomes a viewer, then is no member any more.
    await service.client.put(f"/api/workspaces/default/members/{user_id}", json={"role": "viewer"})
    assert (await service.stranger.post("/api/container-runs", json=run, headers=holder)).status_code == 403
    assert (await service.stranger.get("/api/models", headers=holder)).status_code == 200
    await service.client.delete(f"/api/workspaces/default/members/{user_id}")
    assert (await service.stranger.get("/api/models", headers=holder)).status_code == 401


async def test_a_lost_answer_does_not_lock_anybody_out_and_a_copied_cookie_does(service: Service) -> None:
    _, cookie = await sign_in(service)
    service.clock.advance(ROTATE_AFTER.total_seconds())
    async with window(service, cookie) as first:
        lost = (await first.get("/runs")).headers["set-cookie"]  # never arrives
        service.clock.advance(600)
        again = (await first.get("/runs")).headers["set-cookie"]
        assert again != lost
    fresh = again.split(";")[0].removeprefix("benchyard_session=")
    async with window(service, fresh) as second, window(service, cookie) as copied:
        assert (await second.get("/api/account")).status_code == 200
        assert (await copied.get("/api/account")).status_code == 200  # on its way
        service.clock.advance(STILL_OPENS.total_seconds() + 1)
        assert (await copied.get("/api/account")).status_code == 401
        assert (await second.get("/api/account")).status_code == 401


async def test_closing_an_account_and_the_longest_life(service: Service) -> None:
    user_id, cookie = await sign_in(service)
    async with window(service, cookie) as client:
        assert (await client.get("/api/account")).status_code == 200
        closed = await service.client.patch(f"/api/users/{user_id}", json={"disabled": True})
        assert closed.json()["disabled"] is True
        assert (await client.get("/api/account")).status_code == 401
    _, other = await sign_in(service)
    async with window(service, other) as client:
        for _ in range(20):
            service.clock.advance(timedelta(hours=11).total_seconds())
            status = (await client.get("/api/account")).status_code
            if status == 401:
                break
        assert status == 401
        assert service.clock.now() - START < timedelta(days=8)


async def test_a_form_of_another_site_changes_nothing(service: Service) -> None:
    _, cookie = await sign_in(service)
    async with window(service, cookie) as client:
        foreign = {"sec-fetch-site": "cross-site"}
        assert (await client.post("/account/sessions/end", headers=foreign)).status_code == 403
        assert (await client.get("/api/account")).status_code == 200
