"""A whole run with a model of fixed latency, in a real container, against items x latency / concurrency.

    .venv/bin/python -m tests.bench.run [LATENCY_S] [CONCURRENCY] [ITEMS ...]

`calls`: from the first call at the provider to the end of the last. `whole`: from the request to the completed run, with the
start of the container, the problems, the last grading and the scores. Items are samples of the bundled problems; each is
answered with a program that is executed and graded. The goal is 1.1.
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from tests.faults.counting_provider import CountingProvider
from tests.faults.killing import MODEL, add_model
from tests.faults.service import Service

PROBLEMS = 16


def main() -> None:
    latency_s = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    concurrency = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    sizes = [int(each) for each in sys.argv[3:]] or [64, 256]
    print(f"{latency_s:g} s per call, {concurrency} at once; load of the machine {os.getloadavg()[0]:.1f}")
    print("items   ideal s   calls s   ratio   whole s   ratio   to the first call s   after the last s")
    with (
        tempfile.TemporaryDirectory() as directory,
        CountingProvider(Path(directory) / "provider.log", latency_s) as provider,
    ):
        os.environ |= {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "bench"}
        service = Service(Path(directory) / "data")
        try:
            service.start()
            add_model(service)
            for items in sizes:
                measure(service, provider, items, latency_s, concurrency)
        finally:
            service.close()


def measure(service: Service, provider: CountingProvider, items: int, latency_s: float, concurrency: int) -> None:
    before = len(provider.seen())
    samples = items // PROBLEMS
    shape = {"samples_per_problem": samples, "concurrency": concurrency, "instance_type": "standard-2"}
    run_id = service.submit(MODEL["slug"], sample_size=PROBLEMS, **shape)  # type: ignore[arg-type]
    run = service.wait_status(run_id, "completed", within_s=600)
    calls = [each["at"] for each in provider.seen()[before:] if each["path"].endswith("completions")]
    assert len(calls) == PROBLEMS * samples
    ideal_s = len(calls) * latency_s / concurrency
    began, ended = (datetime.fromisoformat(run[name]).timestamp() for name in ("created_at", "completed_at"))
    calls_s, whole_s = max(calls) + latency_s - min(calls), ended - began
    print(
        f"{len(calls):5} {ideal_s:9.1f} {calls_s:9.2f} {calls_s / ideal_s:7.3f} {whole_s:9.2f} {whole_s / ideal_s:7.3f} "
        f"{min(calls) - began:21.2f} {ended - max(calls) - latency_s:18.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
