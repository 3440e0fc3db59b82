"""Parquet of gigabytes: a pack is built in bounded memory, however large the row groups are."""

from __future__ import annotations

import base64
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestrator.datasets.packs.pack import Pack

PROBE = """
import resource, sys
from pathlib import Path
from orchestrator.datasets.fetching.sources import FORMATS
from orchestrator.datasets.packs.build import build
build(Path(sys.argv[1]), "gsm8k", FORMATS["gsm8k"], [Path(sys.argv[2])])
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
worker = resource.getrusage(resource.RUSAGE_CHILDREN)
own = resource.getrusage(resource.RUSAGE_SELF)
print(int(peak) / 1024, worker.ru_maxrss / 1024, own.ru_utime + own.ru_stime, worker.ru_utime + worker.ru_stime)
"""


def write_parquet(path: Path, row_groups: int, rows: int, row_bytes: int) -> None:
    """A file that hardly compresses: its size is about that of its texts."""
    with pq.ParquetWriter(path, pa.schema({"question": pa.string(), "answer": pa.string()})) as writer:
        for group in range(row_groups):
            chance = random.Random(group)
            texts = [base64.b64encode(chance.randbytes(row_bytes * 3 // 4)).decode() for _ in range(rows)]
            answers = [f"#### {number}" for number in range(rows)]
            writer.write_table(pa.table({"question": texts, "answer": answers}), row_group_size=rows)


def measure(folder: Path, source: Path) -> tuple[float, float, float, float]:
    """Peak memory in MB and processor time in s, each of the building process and of its worker."""
    done = subprocess.run([sys.executable, "-c", PROBE, folder, source], check=True, capture_output=True, text=True)
    building, worker, building_s, worker_s = map(float, done.stdout.split())
    return building, worker, building_s, worker_s


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row_groups", "rows", "row_bytes", "limit"),
    [
        pytest.param(1, 15_000, 10_000, 250, id="150 MB, pages of 10 MB"),
        pytest.param(1, 200_000, 10_000, 250, id="2 GB, pages of 10 MB", marks=pytest.mark.exhaustive),
        pytest.param(3, 7_000, 100_000, 500, id="2 GB, pages of 100 MB", marks=pytest.mark.exhaustive),
    ],
)
def test_a_pack_is_built_in_bounded_memory(tmp_path: Path, row_groups: int, rows: int, row_bytes: int, limit: int) -> None:
    """A page has at least 1,024 rows if pyarrow wrote it, and is decompressed as a whole."""
    source = tmp_path / "test.parquet"
    write_parquet(source, row_groups, rows, row_bytes)
    assert source.stat().st_size > row_groups * rows * row_bytes * 0.7
    building, worker, building_s, worker_s = measure(tmp_path, source)
    print(
        f"{source.stat().st_size / 1e9:.2f} GB: {building:.0f} + {worker:.0f} MB, {building_s:.1f} + {worker_s:.1f} s of CPU"
    )
    assert building + worker < limit
    assert len(Pack.open(tmp_path / "gsm8k.pack")) == row_groups * rows
