# The images of agentworld. A target each:
#   control     operator, service and the command line: no torch, no MLflow
#   train       the steps of a pipeline: torch, transformers, TRL, DeepSpeed, MLflow; the console
#   engine-cpu  vLLM on CPUs, for trials and tests; GPUs take vLLM's own image
#   train-vllm  `train` with vLLM for NVIDIA GPUs, for steps that start it; no test builds it
#
# All run as a user without rights or a home, on a root file system that nobody may write to;
# /tmp is to be writable. A secret `pip` is the pip.conf of whoever builds; it stays out of them.
ARG BASE=python:3.11-slim-bookworm@sha256:528257d48c1da0dcecc2e725d1ae34498d60c965f1241e39cd6a85a8859bdf84

FROM ${BASE} AS runtime
ENV PATH=/opt/agentworld/bin:$PATH \
    HOME=/tmp \
    USER=agentworld \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HF_HUB_OFFLINE=1 \
    MLFLOW_DISABLE_TELEMETRY=true \
    VLLM_NO_USAGE_STATS=1 \
    DO_NOT_TRACK=1
LABEL org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="agentworld"
WORKDIR /tmp
USER 65532:65532

# pip and what builds a wheel have an environment of their own, which no image takes.
FROM ${BASE} AS build
RUN python3 -m venv /build && python3 -m venv --without-pip /opt/agentworld
WORKDIR /source
COPY tools/constraints/product.txt tools/constraints/
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    --mount=type=cache,target=/root/.cache/pip \
    /build/bin/pip install -q -c tools/constraints/product.txt hatchling
COPY tools/constraints/test.txt tools/constraints/vllm.txt tools/constraints/
COPY tools/install_pinned.py tools/

# Of our own files a layer apart: a new version is a megabyte to pull, and not all that it uses.
FROM build AS ours
COPY pyproject.toml README.md LICENSE ./
COPY platform platform
COPY operators operators
COPY pipelines pipelines
RUN /build/bin/pip wheel -q --no-build-isolation --no-deps -w /wheel . \
    && /build/bin/pip --python /opt/agentworld/bin/python install -q \
        --no-deps --no-index /wheel/*.whl

# What is required and not where it is written: another word there installs nothing anew.
FROM build AS requirements
COPY pyproject.toml ./
COPY tools/requirements.py tools/
RUN /build/bin/python tools/requirements.py pipelines postgres s3 >control.txt \
    && /build/bin/python tools/requirements.py pipelines postgres s3 train deepspeed >train.txt

FROM build AS control-packages
COPY --from=requirements /source/control.txt ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    --mount=type=cache,target=/root/.cache/pip \
    /build/bin/pip --python /opt/agentworld/bin/python install -q \
        -c tools/constraints/product.txt -c tools/constraints/test.txt -r control.txt

FROM runtime AS control
LABEL org.opencontainers.image.title="agentworld control" \
      org.opencontainers.image.description="Operator, service and command line of agentworld"
COPY --from=control-packages /opt/agentworld /opt/agentworld
COPY --from=ours /opt/agentworld /opt/agentworld
ENTRYPOINT ["agentworld"]

FROM build AS train-packages
COPY --from=requirements /source/train.txt ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    --mount=type=cache,target=/root/.cache/pip \
    /build/bin/pip --python /opt/agentworld/bin/python install -q \
        -c tools/constraints/product.txt -c tools/constraints/test.txt -r train.txt

FROM runtime AS train-programs
USER 0:0
# Live environments need bubblewrap and mount, and terminals less and vi; torch.compile needs a
# compiler on CPUs and GPUs alike. A base that has them stays as it is.
RUN for program in bwrap mount less vi g++; do command -v "$program" || exit 1; done >/dev/null \
    || { apt-get -q update \
        && apt-get -qy install --no-install-recommends bubblewrap mount less vim-tiny g++ \
        && rm -rf /var/lib/apt/lists/*; }
USER 65532:65532

FROM train-programs AS train
LABEL org.opencontainers.image.title="agentworld train" \
      org.opencontainers.image.description="The steps of agentworld's pipelines, and its console"
COPY --from=train-packages /opt/agentworld /opt/agentworld
COPY --from=ours /opt/agentworld /opt/agentworld
ENTRYPOINT ["agentworld"]

FROM build AS engine-cpu-packages
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    --mount=type=cache,target=/root/.cache/pip \
    /build/bin/pip --python /opt/agentworld/bin/python install -q --no-deps \
        -r tools/constraints/vllm.txt \
    && /build/bin/python tools/install_pinned.py /opt/agentworld \
        tools/constraints/product.txt tools/constraints/test.txt

FROM runtime AS engine-cpu
LABEL org.opencontainers.image.title="agentworld engine-cpu" \
      org.opencontainers.image.description="vLLM on CPUs, for trials and tests"
USER 0:0
# vLLM's operators are linked to it; a base that has it stays as it is.
RUN ldconfig -p | grep -q libnuma.so.1 \
    || { apt-get -q update && apt-get -qy install --no-install-recommends libnuma1 \
        && rm -rf /var/lib/apt/lists/*; }
USER 65532:65532
COPY --from=engine-cpu-packages /opt/agentworld /opt/agentworld
# Without Intel's OpenMP its first answer takes a quarter of a minute. Its sampler would compile
# itself at the first answer, and there is no compiler.
ENV LD_PRELOAD=/opt/agentworld/lib/libiomp5.so \
    TORCH_COMPILE_DISABLE=1 \
    VLLM_TARGET_DEVICE=cpu \
    VLLM_CPU_KVCACHE_SPACE=1
EXPOSE 8000
ENTRYPOINT ["python", "-m", "vllm.entrypoints.openai.api_server"]

# The version that the tests run on CPUs; what it pins itself, such as its kernels, is as it says. It
# stands last, because older builders build every stage before the one that they are asked for.
FROM train-packages AS train-vllm-packages
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    --mount=type=cache,target=/root/.cache/pip \
    /build/bin/pip --python /opt/agentworld/bin/python install -q \
        -c tools/constraints/product.txt vllm==0.32.0

FROM train-programs AS train-vllm
LABEL org.opencontainers.image.title="agentworld train with vLLM" \
      org.opencontainers.image.description="Steps of agentworld's pipelines that start vLLM on a GPU"
COPY --from=train-vllm-packages /opt/agentworld /opt/agentworld
COPY --from=ours /opt/agentworld /opt/agentworld
ENTRYPOINT ["agentworld"]
