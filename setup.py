"""The rest is in pyproject.toml. This puts what images are built from into the package, so that `benchyard images build`
works without a checkout, and fetches the browser code of others; in git the files stay where they are."""

import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
IMAGE_FILES = (
    "runner.Dockerfile",
    "orchestrator.Dockerfile",
    "harness-inspect.Dockerfile",
    "harness-lm-eval.Dockerfile",
    "pyproject.toml",
    "requirements/build.txt",
    "requirements/runner.txt",
    "requirements/orchestrator.txt",
    "requirements/harness-inspect.txt",
    "requirements/harness-lm-eval.txt",
    "scripts/base-image",
    "scripts/browser-packages",
    "scripts/node-package",
    "scripts/orchestrator-entrypoint",
)


class BuildWithImageFiles(build_py):
    """The files go to `orchestrator/images/files`. An editable installation has the checkout itself."""

    def run(self) -> None:
        if not self.editable_mode:  # setuptools would also pack what an earlier build of an older checkout left here
            for package in ("orchestrator", "runner"):
                shutil.rmtree(Path(self.build_lib, package), ignore_errors=True)
            # Before the files are listed; without npm the package is built without the browser code of others.
            subprocess.run(["bash", str(ROOT / "scripts" / "browser-packages")], check=False)
        super().run()
        if not self.editable_mode:
            for source, target in self.image_files():
                self.mkpath(str(Path(target).parent))
                self.copy_file(source, target)

    def image_files(self) -> list[tuple[str, str]]:
        folder = Path(self.build_lib, "orchestrator", "images", "files")
        return [(str(ROOT / name), str(folder / name)) for name in IMAGE_FILES]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return super().get_outputs(include_bytecode) + [target for _, target in self.image_files()]

    def get_output_mapping(self) -> dict[str, str]:
        return {**super().get_output_mapping(), **{target: source for source, target in self.image_files()}}


setup(cmdclass={"build_py": BuildWithImageFiles})
