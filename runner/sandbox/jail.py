"""Giving up privileges."""

import os


def drop_privileges(uid: int) -> None:
    """Make the calling process an ordinary user for good; does nothing when it is one already."""
    if os.geteuid() != 0:
        return
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
