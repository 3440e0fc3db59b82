"""The program that test containers run. Its boot line says what to do; standard library only, run with `python -c`."""

import concurrent.futures
import json
import os
import resource
import signal
import socket
import sys
import time


def connect(host, port):
    """How an attempt to reach an address ends."""
    try:
        with socket.create_connection((host, port), timeout=2):
            return "reached"
    except OSError as error:
        return type(error).__name__


def myself():
    """What the kernel says about this process."""
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    with open("/proc/mounts") as file:
        mounts = {line.split()[1]: line.split()[3].split(",") for line in file}
    return {
        "status": {key: status[key] for key in ("CapEff", "CapBnd", "CapPrm", "NoNewPrivs", "Seccomp", "Uid")},
        "root": mounts["/"],
        "tmp": mounts["/tmp"],
        "shm": "/dev/shm" in mounts,
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "environment": dict(os.environ),
        "hostname": socket.gethostname(),
        "tmp_bytes": os.statvfs("/tmp").f_blocks * os.statvfs("/tmp").f_frsize,
        "engine_socket": os.path.exists("/var/run/docker.sock"),
    }


def main():
    order = json.loads(sys.stdin.readline())
    rest = sys.stdin.read()
    do = order["do"]
    if do == "ignore_term":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", order.get("say", ""), len(rest), flush=True)
    if do == "exit":
        sys.exit(order["code"])
    if do == "flood":
        for _ in range(order["lines"]):
            print("x" * 999)
        print("last", flush=True)
    if do == "grow":
        held = []
        while True:
            held.append(bytearray(b"x") * (4 << 20))
            time.sleep(0.01)
    if do == "family":
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                time.sleep(60)
        print("pids", os.getpid(), flush=True)
    if do == "fill":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        written, why = 0, "nothing stopped it"
        try:
            with open(os.path.join(os.environ.get("TMPDIR", "/tmp"), "full"), "wb", buffering=0) as file:
                while written < order["most"]:
                    written += file.write(bytes(1 << 20))
        except OSError as error:
            why = os.strerror(error.errno)
        print("filled", written, why, flush=True)
    if do == "myself":
        print(json.dumps(myself()), flush=True)
    if do == "reach":
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            ends = pool.map(lambda target: connect(*target), order["targets"])
            print(
                json.dumps({f"{host}:{port}": end for (host, port), end in zip(order["targets"], ends, strict=True)}),
                flush=True,
            )
    if do == "serve":
        listener = socket.create_server(("", order["port"]))
        while True:
            listener.accept()[0].close()
    time.sleep(60)


main()
