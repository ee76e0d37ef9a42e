# The service as an image. Any Linux base with Python 3.11 to 3.14 will do:
#   docker build --build-arg BASE=python:3.12-slim --tag sluice .
# A tag may be moved: docs/operations.md, "Docker", has the command that names a base by its digest.
ARG BASE=python:3.13-slim

# --- the environment, made once for as long as the lock stays the same ------------------------------
FROM ${BASE} AS environment
WORKDIR /opt/sluice
# dask: with what a member of a cluster needs (SLUICE_ENGINE=dask, sluice admin engine).
ARG PACKAGES=run
COPY requirements.lock requirements-dask.lock ./
COPY tools/bootstrap.py tools/slim_environment.py tools/
# In one step: what is deleted in another one would stay in the image below it.
RUN PIP_NO_CACHE_DIR=1 python3 tools/bootstrap.py ${PACKAGES} --system-packages \
    && python3 tools/slim_environment.py .venv

# --- what is compiled: the image itself has no compiler; without one the service runs on NumPy -------
FROM ${BASE} AS kernels
WORKDIR /opt/sluice
RUN command -v cc || command -v gcc || command -v clang \
    || (apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev) \
    || echo "sluice: no C compiler in this base, and none could be installed"
COPY contract contract
COPY domain domain
COPY solvers/kernels/native solvers/kernels/native
COPY exports/native exports/native
COPY measuring/probe measuring/probe
COPY clients/c clients/c
COPY tools/build_kernels.py tools/
RUN mkdir -p solvers/kernels/native/build exports/native/build measuring/probe/build && python3 tools/build_kernels.py

# --- the packages --------------------------------------------------------------------------------------
FROM ${BASE}
RUN groupadd --gid 10001 sluice \
    && useradd --uid 10001 --gid sluice --home-dir /var/lib/sluice --create-home sluice
WORKDIR /opt/sluice
COPY --from=environment /opt/sluice/.venv .venv
COPY . .
COPY --from=kernels /opt/sluice/solvers/kernels/native/build solvers/kernels/native/build
COPY --from=kernels /opt/sluice/exports/native/build exports/native/build
COPY --from=kernels /opt/sluice/measuring/probe/build measuring/probe/build
# Compiled here, because the service may not write into its own folders.
RUN .venv/bin/python -m compileall -q -x '[.]venv' .

# What the image is made of (the annotations of the OCI's image specification).
ARG BASE
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Sluice" \
    org.opencontainers.image.description="Tells messaging systems how to cut messages" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="0.1.0" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.base.name="${BASE}"

ENV PATH=/opt/sluice/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SLUICE_HOST=0.0.0.0 \
    SLUICE_PORT=8080 \
    SLUICE_AUTH=keys \
    SLUICE_DATABASE_URL=sqlite:////var/lib/sluice/sluice.db

# By number, so that a cluster can see that it is not root.
USER 10001:10001
VOLUME /var/lib/sluice
EXPOSE 8080

# http.client, because urllib would ask a configured proxy for 127.0.0.1.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ['SLUICE_PORT']), timeout=4); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]

CMD ["sluice", "serve"]
