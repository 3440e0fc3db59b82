# The runner: one container per run. It starts as root with three capabilities (see orchestrator/engines/docker/options.py),
# because its sandbox gives every program a uid of its own; it reads its orders from standard input.
# BASE is any Python 3.13 on Debian: the official image, or the local one that scripts/base-image makes without a registry.
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS build
COPY requirements/build.txt /src/
RUN pip install --no-cache-dir --no-compile --disable-pip-version-check --root-user-action=ignore --require-hashes -r /src/build.txt
COPY requirements/runner.txt /src/
# Bytecode is compiled here: on a read-only root it can never be written, and imports are most of a runner's start.
RUN uv venv --quiet --no-project --python python3 /opt/venv \
 && VIRTUAL_ENV=/opt/venv uv pip install --quiet --no-cache --compile-bytecode --require-hashes -r /src/runner.txt \
 && find /opt/venv/lib -type d \( -path '*/numpy/*' -o -path '*/sympy/*' -o -path '*/mpmath/*' \) -name tests -prune -exec rm -rf {} + \
 && rm -rf /opt/venv/lib/python3*/site-packages/sympy/parsing/autolev/test-examples

# An interpreter of its own for the runner in containers of other images (docs/commands.md).
COPY runner/commands/kit.py /src/
RUN /opt/venv/bin/python -B /src/kit.py /opt/benchyard-kit

FROM ${BASE}
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY --from=build /opt/benchyard-kit /opt/benchyard-kit
COPY --from=build /opt/venv /opt/venv
WORKDIR /app
COPY runner /app/runner
RUN python -m compileall -q --invalidation-mode unchecked-hash /app/runner \
 && mkdir /opt/benchyard-kit/app && cp -r /app/runner /opt/benchyard-kit/app/
ARG SOURCE=unknown
ARG BASE_ID=unknown
LABEL benchyard.source=${SOURCE} benchyard.base=${BASE_ID}
ENTRYPOINT ["/opt/venv/bin/python", "-m", "runner"]
