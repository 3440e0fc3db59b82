"""Sends the content of a results file to the runner, in lines of base64. Runs as the harness's user."""

import base64
import socket

from runner.harness.results_scan import line, open_regular

PIECE = 3 << 16


def send_file(folder: str, path: str, most: int, link: socket.socket) -> None:
    """Sends nothing if the file is larger than `most`."""
    with open_regular(folder, path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        link.sendall(line({"trouble": f"{path} is larger than {most} bytes"}))
        return
    for start in range(0, len(content), PIECE):
        link.sendall(line({"piece": base64.b64encode(content[start : start + PIECE]).decode()}))
    link.sendall(line({"sent": len(content)}))
