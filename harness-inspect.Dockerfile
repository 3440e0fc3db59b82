# Inspect AI for harness runs (docs/harnesses.md), from locked packages; `benchyard harness build inspect` builds it.
# BASE is any Python 3.13 on Debian: the official image, or the local one that scripts/base-image makes without a registry.
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS build
COPY requirements/build.txt /src/
RUN pip install --no-cache-dir --no-compile --disable-pip-version-check --root-user-action=ignore --require-hashes -r /src/build.txt
COPY requirements/harness-inspect.txt /src/
RUN uv venv --quiet --no-project --python python3 /opt/venv \
 && VIRTUAL_ENV=/opt/venv uv pip install --quiet --no-cache --compile-bytecode --require-hashes -r /src/harness-inspect.txt

FROM ${BASE}
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 XDG_CACHE_HOME=/tmp/cache XDG_DATA_HOME=/tmp/data
COPY --from=build /opt/venv /opt/venv
ARG SOURCE=unknown
ARG BASE_ID=unknown
LABEL benchyard.source=${SOURCE} benchyard.base=${BASE_ID}
