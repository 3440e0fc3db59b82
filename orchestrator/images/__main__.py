"""`python -m orchestrator.images [runner] [orchestrator]`: builds both images, or the named ones. For
`scripts/build-images`, before anything is installed; otherwise use `benchyard images build`."""

from __future__ import annotations

import argparse
import os
import sys

from orchestrator.images.build import Builder, BuildFailed, build_all, process_environment
from orchestrator.images.sources import NAMES, SourcesMissing, find_sources


def _say(sentence: str) -> None:
    sys.stderr.write(f"build-images: {sentence}\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="build-images", description="Build Benchyard's images, if their source changed.")
    parser.add_argument("images", nargs="*", metavar="IMAGE", help="runner, orchestrator; both unless named")
    parser.add_argument("--base", help="the image to build on; or BENCHYARD_BASE")
    options = parser.parse_args()
    tags = {name: os.environ.get(f"BENCHYARD_{name.upper()}_IMAGE", "") for name in NAMES}
    try:
        builder = Builder(find_sources(), process_environment(os.environ.get("BENCHYARD_DOCKER_HOST")), _say)
        build_all(builder, options.images or NAMES, base=options.base, tags=tags, say=_say)
    except (BuildFailed, SourcesMissing) as error:
        _say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
