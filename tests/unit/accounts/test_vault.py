"""The vault: what is sealed opens with its key and in its place only, keys can be changed, and the file is the owner's."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest

from orchestrator.accounts.vault import BadMasterKey, CannotOpen, Vault, load_vault, read_keys

OLD, NEW = b"o" * 32, b"n" * 32
SECRET = "sk-very-secret-ä"


def test_what_is_sealed_opens_in_its_place_only() -> None:
    vault = Vault([NEW])
    sealed = vault.seal(SECRET, "row 1")
    assert vault.open(sealed, "row 1") == SECRET
    assert SECRET not in sealed
    assert vault.seal(SECRET, "row 1") != sealed
    with pytest.raises(CannotOpen, match="another row"):
        vault.open(sealed, "row 2")


@pytest.mark.parametrize("at", [3, 12, 20, -3])
def test_what_was_changed_does_not_open(at: int) -> None:
    vault = Vault([NEW])
    sealed = vault.seal(SECRET, "p")
    changed = list(sealed)
    changed[at] = "A" if changed[at] != "A" else "B"
    with pytest.raises(CannotOpen):
        vault.open("".join(changed), "p")


@pytest.mark.parametrize("junk", ["", "v1", "v1..", "v1.00000000.AAAA", "v2.x.y", "ä"])
def test_what_was_never_sealed_does_not_open(junk: str) -> None:
    with pytest.raises(CannotOpen):
        Vault([NEW]).open(junk, "p")


def test_a_key_is_changed_without_a_gap() -> None:
    sealed = Vault([OLD]).seal(SECRET, "p")
    both = Vault([NEW, OLD])
    assert both.open(sealed, "p") == SECRET
    assert not both.is_current(sealed)
    again = both.seal(both.open(sealed, "p"), "p")
    assert both.is_current(again)
    assert Vault([NEW]).open(again, "p") == SECRET
    with pytest.raises(CannotOpen, match="BENCHYARD_MASTER_KEY"):
        Vault([NEW]).open(sealed, "p")


@pytest.mark.parametrize("text", ["short", "a" * 44, base64.b64encode(b"x" * 31).decode(), "päss" * 11])
def test_what_is_no_key_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(BadMasterKey, match="openssl rand"):
        read_keys(text) or Vault([])


def test_keys_are_read_in_either_alphabet_and_several() -> None:
    raw = bytes(range(224, 256))
    plain, url = base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode().rstrip("=")
    assert read_keys(f"{plain},{url}\n") == [raw, raw]


def test_without_a_setting_a_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    sealed = load_vault(None, None, tmp_path).seal(SECRET, "p")
    file = tmp_path / "master_key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_vault(None, None, tmp_path).open(sealed, "p") == SECRET
    assert load_vault(None, file, tmp_path / "elsewhere").open(sealed, "p") == SECRET
    assert load_vault(file.read_text(), None, tmp_path / "elsewhere").open(sealed, "p") == SECRET
