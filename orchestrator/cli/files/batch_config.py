"""The file that describes a batch: JSON or YAML, with the fields of `POST /api/batches`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.cli.errors import BadUsage
from orchestrator.cli.view.text import clean
from orchestrator.system.yaml_text import MAX_BYTES, BadDocument, parse_document


def read_config(path: Path) -> dict[str, Any]:
    """Files ending in `.json` are JSON, all others YAML, which includes JSON."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadUsage(f"{clean(path)} is larger than 1 MiB; a description is smaller.")
        text = path.read_text(encoding="utf-8-sig")
        return parse_document(text, is_json=path.suffix.lower() == ".json")
    except OSError as error:
        raise BadUsage(f"{clean(path)} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise BadUsage(f"{clean(path)} is not a text file.") from error
    except BadDocument as error:
        hint = "; docs/examples has some to begin with" if "names and values" in str(error) else ""
        raise BadUsage(f"{clean(path)} {clean(error)}{hint}.") from error
