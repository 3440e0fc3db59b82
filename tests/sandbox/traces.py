"""What executions could leave behind on a machine, counted by the user ids that they run as."""

import os
from collections.abc import Collection
from pathlib import Path


def processes(uids: Collection[int]) -> list[int]:
    """Processes that run as one of these users."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.stat(f"/proc/{entry}").st_uid in uids:
                found.append(int(entry))
        except OSError:
            continue
    return found


def objects(uids: Collection[int]) -> set[str]:
    """Files in shared places, message queues, shared memory and semaphores that belong to one of these users."""
    found = set()
    for folder in ("/dev/shm", "/dev/mqueue", "/tmp", "/var/tmp", "/run/lock"):
        try:
            found |= {entry.path for entry in os.scandir(folder) if entry.stat(follow_symlinks=False).st_uid in uids}
        except OSError:
            continue
    for kind in ("shm", "sem", "msg"):
        try:
            header, *rows = (line.split() for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines())
        except (OSError, ValueError):
            continue
        found |= {f"{kind} {row[1]}" for row in rows if int(row[header.index("uid")]) in uids}
    return found
