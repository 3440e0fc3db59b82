"""Asks the Hugging Face hub about a data set: its commit, files with sizes and digests, configs and licence. The only module
that imports huggingface_hub.

A branch or tag is resolved to its commit, and files are downloaded from that commit, so what was asked for later can be
asked for again. Requests go through the proxies, authorities and address rules of this installation. Files are not
downloaded here: `download.fetch` resumes and checks them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from orchestrator.datasets.errors import BadSource, DownloadFailed
from orchestrator.datasets.fetching.sources import RemoteFile, hub_endpoint
from orchestrator.datasets.fetching.splits import Configs, configs_of, files_of_split
from orchestrator.outbound.addresses import AddressRefused, AddressRule
from orchestrator.outbound.transports import CheckingTransport

if TYPE_CHECKING:
    import httpx2

TIMEOUT_S = 60.0
MAX_ANSWER_BYTES = 64 << 20

_session = threading.Lock()
"""huggingface_hub has one HTTP client for the whole process; whoever sets it holds this lock until it has the answer."""


@dataclass(frozen=True)
class HubFile:
    path: str
    size: int | None
    sha256: str | None
    """Of large files; the hub does not give it for small ones."""


@dataclass(frozen=True)
class HubDataset:
    """A data set at one commit."""

    repo: str
    commit: str
    files: tuple[HubFile, ...]
    configs: Configs
    licence: str

    def split(self, config: str | None, split: str | None) -> list[HubFile]:
        by_path = {file.path: file for file in self.files}
        return [by_path[path] for path in files_of_split(self.repo, list(by_path), self.configs, config, split)]

    def remote(self, file: HubFile, endpoint: str) -> RemoteFile:
        return RemoteFile(
            f"{endpoint}/datasets/{self.repo}/resolve/{self.commit}/{quote(file.path)}", file.size, file.sha256
        )


def hub_token(environment: Mapping[str, str] = os.environ) -> str | None:
    """`HF_TOKEN`, or the token that `hf auth login` stored for this user."""
    from huggingface_hub import get_token

    return (environment.get("HF_TOKEN") or "").strip() or get_token()


def ask(
    repo: str,
    revision: str | None = None,
    *,
    judge: Callable[[str], AddressRule] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> HubDataset:
    """Raises `BadSource` or `DownloadFailed` with what to do."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    endpoint, token = hub_endpoint(environment), hub_token(environment)
    api = HfApi(endpoint=endpoint, token=token or False, library_name="benchyard")
    try:
        with _requests_by(CheckingTransport(judge or _any_address)):
            info = api.dataset_info(repo, revision=revision, files_metadata=True, timeout=TIMEOUT_S)
    except HFValidationError as error:
        raise BadSource(f"{repo!r} is not the name of a hub data set, such as openai/gsm8k ({error}).") from None
    except GatedRepoError:
        raise DownloadFailed(gated(repo, endpoint, has_token=token is not None)) from None
    except RevisionNotFoundError:
        raise BadSource(f"{repo} has no revision {revision!r}: give a branch, a tag or a commit.") from None
    except RepositoryNotFoundError:
        raise DownloadFailed(_not_there(repo, endpoint, has_token=token is not None)) from None
    except HfHubHTTPError as error:
        raise DownloadFailed(_refused(repo, endpoint, error.response)) from None
    except AddressRefused as error:
        raise DownloadFailed(f"{repo} may not be fetched: {error}.") from None
    except (httpx.HTTPError, OSError, ValueError) as error:
        raise DownloadFailed(f"The hub at {endpoint} could not be asked about {repo} ({error}). Try again.") from None
    if not info.sha:
        raise DownloadFailed(f"The hub at {endpoint} does not say which commit {revision or 'main'} of {repo} is.")
    card = dict(info.card_data.to_dict()) if info.card_data else {}  # type: ignore[no-untyped-call]
    files = tuple(HubFile(f.rfilename, f.size, f.lfs.sha256 if f.lfs else None) for f in info.siblings or ())
    return HubDataset(repo, info.sha, files, configs_of(card), _licence(card))


def gated(repo: str, endpoint: str, *, has_token: bool) -> str:
    page = f"{endpoint}/datasets/{repo}"
    if not has_token:
        return f"{repo} is gated: accept its terms at {page}, then set HF_TOKEN to a token of that account and try again."
    return f"{repo} is gated and the account of HF_TOKEN has no access: accept its terms at {page}, then try again."


def _not_there(repo: str, endpoint: str, *, has_token: bool) -> str:
    what = "the token in use has no access to it" if has_token else "it is private; then set HF_TOKEN"
    return f"The hub at {endpoint} has no data set {repo}, or {what}. Check the name."


def _refused(repo: str, endpoint: str, response: Any) -> str:
    status = getattr(response, "status_code", None)
    hint = {
        401: "The token in HF_TOKEN is not valid; set another one, or none for public data sets.",
        403: "The token in HF_TOKEN may not read it; set another one.",
        429: "It asks to wait; try again later, or set HF_TOKEN for a higher limit.",
    }.get(status or 0, "Try again later, or fetch the files by hand and use --from FILE.")
    return f"The hub at {endpoint} answered {status} about {repo}. {hint}"


def _licence(card: Mapping[str, Any]) -> str:
    given = card.get("license") or card.get("license_name") or ""
    return ", ".join(map(str, given)) if isinstance(given, list) else str(given)


def _any_address(_host: str) -> AddressRule:
    return lambda _address: None


@contextmanager
def _requests_by(transport: httpx.BaseTransport) -> Iterator[None]:
    """Within the block, the requests of huggingface_hub go through `transport`."""
    import httpx2
    from huggingface_hub import close_session, set_client_factory

    class Bridge(httpx2.BaseTransport):
        """The library speaks httpx2, our transports httpx."""

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            sent = httpx.Request(request.method, str(request.url), headers=request.headers.raw, content=request.read())
            answer = transport.handle_request(sent)
            try:
                body = b"".join(_bounded(answer))
            finally:
                answer.close()
            return httpx2.Response(answer.status_code, headers=answer.headers.raw, content=body)

    with _session:
        set_client_factory(lambda: httpx2.Client(transport=Bridge(), follow_redirects=True, timeout=TIMEOUT_S))
        try:
            yield
        finally:
            close_session()
            transport.close()


def _bounded(answer: httpx.Response) -> Iterator[bytes]:
    size = 0
    for piece in answer.iter_raw():
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            raise ValueError(f"its answer is longer than {MAX_ANSWER_BYTES >> 20} MiB")
        yield piece
