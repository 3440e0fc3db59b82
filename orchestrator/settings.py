"""All settings, read from the environment. Every one is listed in docs/configuration.md; a test checks that."""

from __future__ import annotations

import ipaddress
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from orchestrator.engines.engine import InstanceType, Placement
from orchestrator.setting_checks import (
    addresses_with_ports,
    json_object,
    kube_labels,
    kube_name,
    kube_names,
    mail_server,
    resource_name,
    store_url,
    web_address,
)
from orchestrator.setting_checks import database_url as check_database_url
from orchestrator.setting_checks import kube_tolerations as check_tolerations
from orchestrator.setting_checks import log_level as check_log_level
from orchestrator.setting_checks import token as check_token
from orchestrator.system.files import DiskRoom
from runner.contract.run_spec import RunKind

GIB = 1 << 30
MIB = 1 << 20
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class InstanceTypeSetting(BaseModel):
    vcpu: float = Field(gt=0)
    memory_mib: int = Field(gt=0)
    disk_gb: int = Field(gt=0)
    max_instances: int | None = Field(default=None, ge=1)
    warm: int = Field(default=0, ge=0)
    sleep_after_s: float = Field(default=900, gt=0)
    node_selector: Annotated[dict[str, str], BeforeValidator(kube_labels)] = {}
    tolerations: Annotated[tuple[dict[str, Any], ...], BeforeValidator(check_tolerations)] = ()
    priority_class: Annotated[str | None, BeforeValidator(kube_name)] = None


DEFAULT_INSTANCE_TYPES = {
    "lite": InstanceTypeSetting(vcpu=1 / 16, memory_mib=256, disk_gb=2),
    "basic": InstanceTypeSetting(vcpu=1 / 4, memory_mib=1024, disk_gb=4),
    "standard-1": InstanceTypeSetting(vcpu=1 / 2, memory_mib=4096, disk_gb=8),
    "standard-2": InstanceTypeSetting(vcpu=1, memory_mib=6144, disk_gb=12),
    "standard-3": InstanceTypeSetting(vcpu=2, memory_mib=8192, disk_gb=16),
    "standard-4": InstanceTypeSetting(vcpu=4, memory_mib=12288, disk_gb=20),
}


def _hosts_and_networks(value: object) -> object:
    """A comma-separated list of host names, addresses and networks."""
    if not isinstance(value, str):
        return value
    entries = tuple(filter(None, (entry.strip() for entry in value.split(","))))
    for entry in entries:
        try:
            ipaddress.ip_network(entry)
        except ValueError:
            if not re.fullmatch(r"(?=.*[A-Za-z])[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?", entry):
                raise ValueError(
                    f"{entry!r} is neither a host's name nor a network; write for example 'chat.internal, 10.1.0.0/16'"
                ) from None
    return entries


def _networks(value: object) -> object:
    """A comma-separated list of addresses and networks."""
    if not isinstance(value, str):
        return value
    try:
        return tuple(ipaddress.ip_network(entry.strip()) for entry in value.split(",") if entry.strip())
    except ValueError as error:
        raise ValueError(f"{error}; write for example '10.1.0.0/16, 127.0.0.1'") from None


def _origins(value: object) -> object:
    """A comma-separated list of origins as browsers send them."""
    if not isinstance(value, str):
        return value
    entries = tuple(entry.strip().rstrip("/") for entry in value.split(",") if entry.strip())
    for entry in entries:
        if not re.fullmatch(r"https?://[a-z0-9.\-\[\]:]+", entry):
            raise ValueError(f"{entry!r} is not an origin; write for example 'https://lab.example', without a path or *")
    return entries


def _patterns(value: object) -> object:
    """A comma-separated list."""
    return tuple(filter(None, (pattern.strip() for pattern in value.split(",")))) if isinstance(value, str) else value


class Settings(BaseSettings):
    """Read once at start. Variables have the prefix `BENCHYARD_`, except where an alias is given."""

    model_config = SettingsConfigDict(
        env_prefix="BENCHYARD_", env_ignore_empty=True, extra="ignore", frozen=True, populate_by_name=True
    )

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    public_url: Annotated[str | None, BeforeValidator(web_address)] = None
    runner_host: str | None = None
    runner_port: int | None = Field(default=None, ge=0, le=65535)
    gateway_processes: int = Field(default=1, ge=1, le=64)
    trusted_proxies: Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_networks)] = ()
    cors_origins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_origins)] = ()
    oidc_issuer: Annotated[str | None, BeforeValidator(web_address)] = None
    oidc_client_id: str | None = None
    oidc_client_secret: SecretStr | None = None
    oidc_client_secret_file: Path | None = None
    oidc_scopes: str = "openid profile email"
    oidc_model_scope: str | None = None
    oidc_model_provider: str | None = None
    oidc_new_users: Literal["viewer", "member", "wait"] = "viewer"
    oidc_allow_http: bool = False
    session_idle_s: float = Field(default=12 * 3600, gt=0)
    session_max_s: float = Field(default=7 * 24 * 3600, gt=0)
    data: Path = Path("data")
    token: Annotated[SecretStr | None, BeforeValidator(check_token)] = None
    master_key: SecretStr | None = None
    master_key_file: Path | None = None
    system_keys: Literal["everyone", "owners"] = "everyone"
    database_url: Annotated[SecretStr | None, BeforeValidator(check_database_url)] = Field(
        default=None, validation_alias="DATABASE_URL"
    )

    engine: Literal["auto", "docker", "kubernetes", "process"] = "auto"
    docker_host: str | None = None
    in_container: bool = False
    instance: Annotated[str | None, BeforeValidator(resource_name)] = None
    as_copy: bool = False
    runner_image: str = "benchyard-runner:latest"
    runner_pull: bool = False
    runner_network: Annotated[str, BeforeValidator(resource_name)] = "benchyard-runners"
    runner_url: Annotated[str | None, BeforeValidator(web_address)] = None
    sandbox_level: Literal["full", "shared-uid", "no-landlock", "minimal"] | None = None
    instance_types: Annotated[
        dict[str, InstanceTypeSetting],
        NoDecode,
        BeforeValidator(json_object('\'{"small": {"vcpu": 1, "memory_mib": 2048, "disk_gb": 8}}\'')),
        Field(min_length=1),
    ] = DEFAULT_INSTANCE_TYPES
    default_instance_type: str = "standard-1"
    max_instances: int = Field(default=4, ge=1)
    warm: Annotated[
        dict[str, Annotated[int, Field(ge=0)]], NoDecode, BeforeValidator(json_object("'{\"standard-1\": 2}'"))
    ] = {}
    kind_limits: Annotated[
        dict[RunKind, Annotated[int, Field(ge=0)]], NoDecode, BeforeValidator(json_object("'{\"eval_execute\": 2}'"))
    ] = {RunKind.EVAL_GENERATE: 2, RunKind.EVAL_EXECUTE: 2}
    command_images: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_patterns)] = ()
    command_pull: bool = True
    command_network: Annotated[str | None, BeforeValidator(resource_name)] = None
    vcpu_capacity: float | None = Field(default=None, gt=0)
    memory_capacity_mib: int | None = Field(default=None, gt=0)

    kube_config: Path | None = None
    kube_context: str | None = None
    kube_namespace: Annotated[str, BeforeValidator(kube_name)] = "benchyard-runners"
    kube_runner_address: str | None = None
    kube_service_account: Annotated[str | None, BeforeValidator(kube_name)] = None
    kube_pull_secrets: Annotated[tuple[str, ...], NoDecode, BeforeValidator(kube_names)] = ()
    kube_runtime_class: Annotated[str | None, BeforeValidator(kube_name)] = None
    kube_user_namespaces: bool = False
    kube_node_selector: Annotated[dict[str, str], NoDecode, BeforeValidator(kube_labels)] = {}
    kube_tolerations: Annotated[tuple[dict[str, Any], ...], NoDecode, BeforeValidator(check_tolerations)] = ()
    kube_priority_class: Annotated[str | None, BeforeValidator(kube_name)] = None
    kube_queue: Annotated[str | None, BeforeValidator(kube_name)] = None
    kube_pod_security: Literal["baseline", "restricted"] = "baseline"
    kube_require_policy: bool = True
    kube_probe_targets: Annotated[tuple[str, ...], NoDecode, BeforeValidator(addresses_with_ports)] = ("169.254.169.254:80",)
    kube_max_wait_s: float = Field(default=3600, gt=0)

    start_timeout_s: float = Field(default=120, gt=0)
    lease_s: float = Field(default=30, gt=0)
    suspect_s: float = Field(default=30, gt=0)
    heartbeat_s: float = Field(default=10, gt=0)
    remove_on_stop: bool = False
    runner_patience_s: float = Field(default=6 * 3600, gt=0)
    reconcile_s: float = Field(default=5, gt=0)
    default_deadline_s: int = Field(default=24 * 3600, ge=1)
    leader_lease_s: float = Field(default=15, gt=0)
    min_free_disk_bytes: int = Field(default=2 * GIB, ge=0)
    min_free_disk_share: float = Field(default=0.05, ge=0, lt=1)

    max_body_bytes: int = Field(default=1 * MIB, gt=0)
    max_event_body_bytes: int = Field(default=32 * MIB, gt=0)
    max_upload_bytes: int = Field(default=4 * GIB, gt=0)
    max_artefact_bytes: int = Field(default=256 * MIB, gt=0)
    max_run_artefact_bytes: int = Field(default=1 * GIB, gt=0)
    request_timeout_s: float = Field(default=30, gt=0)
    result_retention_days: int = Field(default=0, ge=0, le=36500)
    event_retention_days: int = Field(default=30, ge=1)
    archive_max_bytes: int = Field(default=8 * GIB, gt=0)
    archive_total_bytes: int = Field(default=20 * GIB, ge=0)
    archive_retention_days: int = Field(default=90, ge=0)
    archive_store: Annotated[str | None, BeforeValidator(store_url)] = None
    s3_bucket: str | None = None
    s3_endpoint: Annotated[str | None, BeforeValidator(web_address)] = None
    s3_region: str = "us-east-1"
    s3_prefix: str = "benchyard/"
    s3_access_key_id: str | None = None
    s3_secret_access_key: SecretStr | None = None

    vcpu_hour_usd: float = Field(default=0, ge=0)
    gib_hour_usd: float = Field(default=0, ge=0)
    daily_budget_usd: float | None = Field(default=None, ge=0)
    reuse_answers: bool = False
    reuse_answers_days: int = Field(default=30, ge=1, le=36500)
    prompt_caching: bool = True
    batch_poll_s: float = Field(default=60, gt=0, le=3600)
    batch_max_calls: int = Field(default=50_000, ge=1, le=100_000)
    batch_max_bytes: int = Field(default=100 * MIB, ge=64 * 1024, le=200 * MIB)
    batch_turns: int = Field(default=4, ge=1, le=1000)
    batch_unanswered: Literal["call", "retry"] = "call"
    batch_price_share: float = Field(default=0.5, gt=0, le=1)
    batch_lost_after_s: float = Field(default=900, gt=0, le=86400)
    ca_bundle: Path | None = None
    """Listed for documentation and containers; `outbound.tls` reads the variable itself, also for the command line and
    agents."""
    dataset_allow: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_hosts_and_networks)] = ()
    webhook_allow: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_hosts_and_networks)] = ()
    smtp_url: Annotated[SecretStr | None, BeforeValidator(mail_server)] = None
    smtp_from: str | None = None
    demo_latency_s: float = Field(default=0.15, ge=0)
    log_max_bytes: int = Field(default=20 * MIB, ge=64 * 1024)
    log_files_kept: int = Field(default=3, ge=0, le=99)
    log_level: Annotated[str, BeforeValidator(check_log_level)] = "info"

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        """Checks that involve several settings. Each message names the variable to change."""
        types = ", ".join(self.instance_types)
        if self.smtp_url is not None and not self.smtp_from:
            raise ValueError("BENCHYARD_SMTP_FROM is missing: it names the sender of e-mails, for example bench@example.org")
        if self.default_instance_type not in self.instance_types:
            default_type = self.default_instance_type[:60]
            raise ValueError(
                f"BENCHYARD_DEFAULT_INSTANCE_TYPE is not valid: there is no type {default_type!r}; known: {types}"
            )
        if unknown := [name for name in self.warm if name not in self.instance_types]:
            raise ValueError(f"BENCHYARD_WARM is not valid: there is no type {unknown[0][:60]!r}; known: {types}")
        if self.gateway_processes > 1:
            url = self.database_url.get_secret_value() if self.database_url else ""
            if not url.startswith("postgres"):
                raise ValueError(
                    "BENCHYARD_GATEWAY_PROCESSES needs PostgreSQL (DATABASE_URL): on SQLite, one process makes all calls"
                )
            if not sys.platform.startswith("linux"):
                raise ValueError("BENCHYARD_GATEWAY_PROCESSES must be 1 here: several processes share a port only on Linux")
        if self.engine == "kubernetes" and self.command_network:
            raise ValueError(
                "BENCHYARD_COMMAND_NETWORK is a network of Docker: leave it out with BENCHYARD_ENGINE=kubernetes, "
                "where commands have no network"
            )
        if self.oidc_issuer and not self.oidc_client_id:
            raise ValueError("BENCHYARD_OIDC_CLIENT_ID is missing: BENCHYARD_OIDC_ISSUER needs it")
        return self

    @property
    def effective_runner_port(self) -> int:
        return self.port + 1 if self.runner_port is None else self.runner_port

    @property
    def least_sandbox_level(self) -> str | None:
        """The weakest sandbox that will do, if it is set or follows from another setting."""
        if self.sandbox_level is None and self.engine == "kubernetes" and self.kube_pod_security == "restricted":
            return "shared-uid"
        return self.sandbox_level

    @property
    def room(self) -> DiskRoom:
        """The space that may still be used in the data directory."""
        return DiskRoom(self.data.absolute(), self.min_free_disk_bytes, self.min_free_disk_share)

    @property
    def address(self) -> str:
        """Where people open the service."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104
        return (self.public_url or f"http://{host}:{self.port}").rstrip("/")

    @property
    def root(self) -> str:
        """The path prefix of all links: that of the public URL, if a proxy serves us under one."""
        return urlsplit(self.public_url or "").path.rstrip("/")

    def pool(self, name: str) -> tuple[int, float]:
        """The size of a type's warm pool, and after how many idle seconds runners beyond it are stopped."""
        setting = self.instance_types[name]
        return self.warm.get(name, setting.warm), setting.sleep_after_s

    def instance_type(self, name: str) -> InstanceType:
        setting = self.instance_types[name]
        return InstanceType(
            name=name,
            vcpu=setting.vcpu,
            memory_bytes=setting.memory_mib * MIB,
            disk_bytes=setting.disk_gb * 10**9,
            max_instances=setting.max_instances,
            placement=Placement(setting.node_selector, setting.tolerations, setting.priority_class),
        )
