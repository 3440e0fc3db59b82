# The orchestrator: API, pages, dispatcher. Its entry point drops root at once and keeps only the group of the engine's socket.
# BASE: see runner.Dockerfile.
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS build
COPY requirements/build.txt /src/
RUN pip install --no-cache-dir --no-compile --disable-pip-version-check --root-user-action=ignore --require-hashes -r /src/build.txt
COPY requirements/orchestrator.txt /src/
# Of pyarrow, only the reader and the writer of Parquet files are used: neither Flight nor Substrait, object
# stores, headers or tests. Of botocore, only the signer is used: none of the descriptions of services.
RUN uv venv --quiet --no-project --python python3 /opt/venv \
 && VIRTUAL_ENV=/opt/venv uv pip install --quiet --no-cache --compile-bytecode --require-hashes -r /src/orchestrator.txt \
 && cd /opt/venv/lib/python3*/site-packages && rm -rf kubernetes/aio botocore/data \
 && cd pyarrow && rm -rf tests include src *.pxi *.pyx *.pxd _flight.* flight.py libarrow_flight.so.* _substrait.* substrait.py \
    _s3fs.* _azurefs.* _gcsfs.* _hdfs.* libarrow_s3.so.* libarrow_python.so libarrow_python.so.*.*.* \
 && /opt/venv/bin/python -I -c 'import pyarrow.parquet, botocore.auth, botocore.credentials'
# The project without its packages: its metadata and the command. The sources come last, as a small layer of their own.
COPY pyproject.toml /src/project/
RUN touch /src/project/README.md /src/project/LICENSE \
 && pip wheel --quiet --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir /src/wheels /src/project \
 && VIRTUAL_ENV=/opt/venv uv pip install --quiet --no-cache --no-deps /src/wheels/*.whl

# The browser code of others, where the sources come without it: a clone in which nothing was set up.
FROM build AS sources
COPY scripts/node-package scripts/browser-packages /src/scripts/
COPY orchestrator /src/orchestrator
RUN /src/scripts/browser-packages || echo "Pages will draw charts on the server and use the system's fonts."

FROM ${BASE}
ENV PATH=/opt/benchyard/bin:/opt/venv/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    BENCHYARD_DATA=/data BENCHYARD_HOST=0.0.0.0 BENCHYARD_PORT=8000 BENCHYARD_IN_CONTAINER=1
RUN echo 'benchyard:x:10001:' >>/etc/group && echo 'benchyard:x:10001:10001::/data:/usr/sbin/nologin' >>/etc/passwd \
 && install -d -m 0700 -o 10001 -g 10001 /data
COPY --from=build /opt/venv /opt/venv
WORKDIR /app
COPY scripts/orchestrator-entrypoint /usr/local/bin/orchestrator-entrypoint
RUN mkdir -p /opt/benchyard/bin && ln -s /usr/local/bin/orchestrator-entrypoint /opt/benchyard/bin/benchyard
COPY runner/__init__.py /app/runner/
COPY runner/contract /app/runner/contract
COPY runner/rules /app/runner/rules
# Tries users' Python files in the runner's sandbox, in a process of its own.
COPY runner/sandbox /app/runner/sandbox
COPY runner/reporting/__init__.py runner/reporting/truncation.py /app/runner/reporting/
COPY runner/benchmarks/__init__.py runner/benchmarks/user_program.py runner/benchmarks/task_types.py /app/runner/benchmarks/
COPY runner/items/__init__.py runner/items/task_trial.py /app/runner/items/
COPY --from=sources /src/orchestrator /app/orchestrator
RUN python -m compileall -q --invalidation-mode unchecked-hash /app
ARG SOURCE=unknown
ARG BASE_ID=unknown
LABEL benchyard.source=${SOURCE} benchyard.base=${BASE_ID}
VOLUME /data
# 8000: people; 8001: runners, over their own network only.
EXPOSE 8000 8001
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-I", "-c", "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["/usr/local/bin/orchestrator-entrypoint"]
CMD ["benchyard", "serve"]
