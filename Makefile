# Every target's one line is what `make help` prints.
CARGO ?= cargo
# How `make demo` runs slotwright. CI names the program that the tests have built.
SLOTWRIGHT ?= $(CARGO) run --bin slotwright --
# The program as the tests build it. The tests give tokio features that cargo otherwise leaves out, so that `cargo build --bin`
# alone compiles two thirds of the crates a second time. Naming a test beside the program makes cargo choose the tests' features.
BUILT := $(or $(CARGO_TARGET_DIR),target)/debug/slotwright
# The fuzz targets need a C++ compiler.
CLIPPED := $(if $(shell command -v c++),--workspace)
NEXTEST := $(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo yes)

.PHONY: help demo test chaos mutants lint clients e2e e2e-nodes bench oracle fuzz crds figures knobs fmt

help: ## Say what each target does
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 11

demo: ## Run a pool on an embedded cluster: make demo, make demo ARGS=--serve
	@echo "Builds slotwright, if it is not built: a few minutes the first time. Then the demo takes half a minute."
	$(SLOTWRIGHT) demo $(ARGS)

test: ## Run all tests against the embedded server, and the examples in the docs
ifeq ($(NEXTEST),yes)
	$(CARGO) nextest run --locked
else
	@echo "cargo-nextest is not installed: cargo test instead"
	$(CARGO) test --locked --lib --bins --tests
endif
	$(CARGO) test --locked --doc -q

# A test of the program beside chaos, for the features: see BUILT.
chaos: ## Run the operator under faults in virtual time: make chaos SEEDS=2000, or SEED=7 for the story of one
	CHAOS_SEEDS=$(or $(SEEDS),2000) $(if $(FIRST),CHAOS_FIRST=$(FIRST)) $(if $(SEED),CHAOS_SEED=$(SEED)) \
		$(CARGO) test $(if $(PROFILE),--profile $(PROFILE)) --test chaos --test commands -- --nocapture whatever

mutants: ## Break each guard of tests/mutations on purpose and demand that chaos notices
	hack/mutants.py

lint: ## Check format, clippy, dependencies, scripts, and that what is generated is up to date
	$(CARGO) fmt --check
	$(CARGO) clippy --locked $(CLIPPED) --all-targets -- -D warnings
	$(if $(CLIPPED),,@echo "lint: no C++ compiler, so the fuzz targets are left out" >&2)
	@hack/lint.sh
	$(CARGO) build -q --locked --bin slotwright --test commands
	$(BUILT) crds --dir crds --check
	$(BUILT) knobs --file docs/reference/knobs.md --check
	hack/manifests.sh --check

clients: ## Run Parsl, Dask and Snakemake, unmodified, through condor_submit, condor_q and condor_rm: make clients CLIENT=dask
	CARGO="$(CARGO)" hack/clients.sh $(CLIENT)

e2e: ## Run the integration tests, the chart, the webhook and the policies against a real kube-apiserver (built once where missing)
	hack/e2e.sh
	hack/e2e-webhook.sh
	hack/e2e-policies.sh

e2e-nodes: ## Run what happens to programs on real kubelets (root; built once where missing): make e2e-nodes PROCS=500 SHARDS=2
	$(if $(PROCS),PROCS=$(PROCS)) $(if $(SHARDS),SHARDS=$(SHARDS)) hack/e2e-nodes.sh $(FILTER)

bench: ## Measure matching beside HTCondor's library (docs/reference/benchmarks.md), a cycle beside its negotiator and pods beside batch/v1 Jobs (docs/reference/performance.md), a polling pass, decisions beside much else
	$(CARGO) bench --bench matchmaking -- --write docs/reference/benchmarks.md
	$(CARGO) bench -p slotwright-classad --bench bounds
	$(CARGO) bench --bench cycle
	$(CARGO) bench --bench polling
	$(CARGO) bench --bench walks
	CARGO="$(CARGO)" hack/bench-negotiator.sh
	CARGO="$(CARGO)" hack/bench-cluster.sh --write docs/reference/performance.md
	CARGO="$(CARGO)" hack/bench-cluster.sh --trouble --write docs/reference/performance.md

oracle: ## Compare fresh random cases with HTCondor's own answers: make oracle SEED=7 COUNT=20000
	CARGO="$(CARGO)" hack/oracle.sh $(SEED) $(COUNT)

fuzz: ## Fuzz one target for some seconds: make fuzz TARGET=classad_eval TIME=3600
	hack/fuzz.sh $(or $(TARGET),classad_eval) $(TIME)

crds: ## Write crds/ from the types, and deploy/base from the chart
	$(CARGO) run -q --bin slotwright -- crds --dir crds
	hack/manifests.sh

figures: ## Simulate the manual's figures (docs/figures) and a desktop's day again
	CARGO="$(CARGO)" hack/figures.sh

knobs: ## Write docs/reference/knobs.md from the knob table
	$(CARGO) run -q --bin slotwright -- knobs --file docs/reference/knobs.md

fmt: ## Format the code
	$(CARGO) fmt
