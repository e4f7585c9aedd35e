# Fantasia. `make help` lists the targets.
SHELL := /bin/bash
GO ?= go
TOOL := $(GO) tool -modfile=tools/go.mod
BIN := bin/
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# Builds, tests and linters share what they compile only if all of them have this flag.
export GOFLAGS := $(strip -trimpath $(filter-out -trimpath,$(GOFLAGS)))

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build examples/digits/digits ## Tune a network on handwritten digits, eight trials at once (about a minute)
	bin/fantasia run examples/digits/study.yaml

.PHONY: build
build: ## Build bin/fantasia, bin/coordinator, bin/worker and bin/kubeworker as static programs
	CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/...

.PHONY: examples/digits/digits
examples/digits/digits:
	CGO_ENABLED=0 $(GO) build -o $@ ./examples/digits

.PHONY: images
images: ## Build the container images into bin/images, without Docker
	cd deploy/images/build && CGO_ENABLED=0 $(GO) build -o ../../../bin/tools/images .
	bin/tools/images --root . --out bin/images --version '$(VERSION)' $(IMAGES)

# These packages compute in one goroutine or in goroutines of optimizer/numeric/linalg, which has
# the race detector's attention itself. It would only make them five times as slow.
SEQUENTIAL := ./coordinator/engine ./optimizer/algorithms/... ./optimizer/papers/...

# The slowest packages start first, so that none runs alone at the end.
.PHONY: test
test: ## Run every test, with the race detector, against real NATS and etcd
	CGO_ENABLED=1 $(GO) test -race -timeout 20m ./internal/test/e2e ./deploy/helm $$($(GO) list ./... | grep -vxF "$$($(GO) list $(SEQUENTIAL))")
	CGO_ENABLED=1 $(GO) test -race -run '^TestConformance$$/./(any_number_of_cores|concurrent_calls)' ./optimizer/algorithms/... ./optimizer/papers/...
	CGO_ENABLED=0 $(GO) test -timeout 20m $(SEQUENTIAL)
	CGO_ENABLED=0 $(GO) test -tags mutants -run '^Test(Simulator|Shell)Notices$$' ./coordinator/engine ./internal/test/simulation
	CGO_ENABLED=0 $(GO) test -tags failpoints ./internal/base/failpoint
	cd deploy/images/build && CGO_ENABLED=0 $(GO) test ./...
	cd tools/release && CGO_ENABLED=0 $(GO) test ./...

.PHONY: e2e
e2e: ## Run the end-to-end tests on the cluster of KUBECONFIG (minutes; see scripts/e2e)
	scripts/e2e $(ARGS)

.PHONY: e2e-keda
e2e-keda: ## Test autoscaling by KEDA there (builds it: a quarter of an hour the first time)
	FANTASIA_E2E_KEDA=yes scripts/e2e -run '^TestKEDA$$'

.PHONY: e2e-cert-manager
e2e-cert-manager: ## Test the chart's certificates by cert-manager there (builds it: minutes the first time)
	FANTASIA_E2E_CERT_MANAGER=yes scripts/e2e -run '^TestCertManager$$'

.PHONY: e2e-policies
e2e-policies: ## Test NetworkPolicies there, as root on its only node (builds kube-router: minutes)
	FANTASIA_E2E_POLICIES=yes scripts/e2e -run '^TestPolicies$$'

.PHONY: test-observe
test-observe: ## Test traces, metrics and alerts with Jaeger, Prometheus and a collector (minutes)
	$(GO) test -tags e2e -count 1 -timeout 60m $(ARGS) ./internal/test/observe

.PHONY: test-python
test-python: build ## Run the tests that need Python with scikit-learn
	scripts/test-python

.PHONY: test-browser
test-browser: ## Look at the dashboard in a real Chromium (installs it on Debian, as root)
	scripts/test-browser $(ARGS)

.PHONY: test-client
test-client: build ## Test the Python client with Optuna, scikit-learn, XGBoost and LightGBM (minutes)
	scripts/test-client $(ARGS)
	PYTHON=$$(clients/python/setup test)/bin/python CGO_ENABLED=0 $(GO) test -tags python -count 1 -run '^TestPythonClient$$' ./internal/test/e2e

.PHONY: test-torch
test-torch: build ## Test its callbacks for Lightning and transformers with PyTorch (minutes; installs 6 GB)
	cd clients/python && "$$(./setup torch)/bin/pytest" -p no:cacheprovider -m torch tests/test_torch.py $(ARGS)

.PHONY: test-api
test-api: build ## Call the API with requests made of its OpenAPI document (minutes)
	FANTASIA_API_EXAMPLES=200 scripts/test-client tests/test_openapi.py $(ARGS)

.PHONY: wheel
wheel: ## Build the Python client's wheels and source distribution into dist/
	VERSION='$(VERSION)' scripts/wheel

.PHONY: release
release: ## Build what a release consists of, from the tag of HEAD, into dist/release
	scripts/release

.PHONY: release-check
release-check: ## Build the release of HEAD twice, compare the bytes and look at the packages (an hour; PLATFORMS=linux/amd64: minutes)
	scripts/release check

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each (30s)
	scripts/fuzz $(or $(FUZZTIME),30s)

.PHONY: go-bench
go-bench: ## Run the Go benchmarks (minutes)
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench . -benchmem -timeout 60m ./...

.PHONY: simulate
simulate: ## Play SCHEDULES schedules of crashes and losses against the engine, 20000 unless given
	CGO_ENABLED=0 $(GO) test ./coordinator/engine -count 1 -timeout 6h -v -run '^TestSimulator(OfClients)?$$' -sim.schedules=$(or $(SCHEDULES),20000)

.PHONY: simulate-shell
simulate-shell: ## Play SCHEDULES schedules (2000) of faults against coordinators and workers in virtual time, from SEED (1) on, or a script, REPLAY, ten times
	mkdir -p bin
	CGO_ENABLED=0 $(GO) test ./internal/test/simulation -timeout 6h -run '^TestShell$$' -sim.scripts='$(abspath bin)' \
	  $(if $(REPLAY),-count 10 -sim.replay='$(abspath $(REPLAY))',-count 1 -sim.schedules=$(or $(SCHEDULES),2000) -sim.first=$(or $(SEED),1))

.PHONY: mutations
mutations: ## Switch each safety check of the engine, and each guard of the shell, off: the simulators must notice
	CGO_ENABLED=0 $(GO) test -tags mutants -count 1 -v -run '^TestSimulatorNotices$$' ./coordinator/engine
	CGO_ENABLED=0 $(GO) test -tags mutants -count 1 -v -timeout 1h -run '^TestShellNotices$$' ./internal/test/simulation

.PHONY: failpoints
failpoints: ## Kill a process at each of its steps, also at the first HITS times that it gets there (10)
	CGO_ENABLED=0 $(GO) test ./internal/test/e2e -count 1 -timeout 6h -v -run '^TestNo(thing|Call)IsLostAtAnyStep$$' -failpoints.hits=$(or $(HITS),10)

.PHONY: failover
failover: ## Kill the leader ROUNDS times, and ask it to end as often: how long nothing is committed (200: 35 minutes)
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench Failover -benchtime $(or $(ROUNDS),200)x -timeout 6h ./internal/test/e2e

.PHONY: test-upgrade
test-upgrade: ## Test upgrades from and rollbacks to an earlier commit, EARLIER, with both versions running at once
	scripts/upgrade $(EARLIER)

.PHONY: chaos
chaos: ## Play faults of every kind for MINUTES (10) while studies run, drawn by SEED (1): nothing may be lost
	CGO_ENABLED=0 $(GO) test ./internal/test/chaos -count 1 -timeout 24h -v -run '^TestChaos$$' \
	  -chaos.minutes=$(or $(MINUTES),10) -chaos.seed=$(or $(SEED),1) -chaos.report='$(abspath $(or $(REPORT),bin/chaos.md))'

.PHONY: load
load: ## Put a coordinator under the load of WORKERS (1000) workers, and measure it into bin/load.md (minutes)
	rm -f '$(abspath $(or $(REPORT),bin/load.md))' && mkdir -p bin
	CGO_ENABLED=0 $(GO) test ./internal/test/load -count 1 -timeout 6h -v \
	  -load.workers=$(or $(WORKERS),1000) -load.report='$(abspath $(or $(REPORT),bin/load.md))' $(ARGS)

# Benchmarks beside other tuners, and the tables of the papers.
RESEARCH := examples-gains linalg seeds train-transformer paper-pt benchmarks plots benchmarks-quick paper-lgp paper-uhe paper-uhe-estimates stopping
.PHONY: research $(RESEARCH)
research: ## List the targets that compare with other tuners and repeat the papers' tables
	@$(MAKE) -s -f research/Makefile help
$(RESEARCH):
	@$(MAKE) -f research/Makefile $@

.PHONY: check
check: ## Check the formatting, and run go vet
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); [ -z "$$unformatted" ] || { echo "not formatted: $$unformatted" >&2; exit 1; }
	CGO_ENABLED=0 $(GO) vet ./...

.PHONY: lint
lint: ## Lint the Go code, the API and the workflows
	$(TOOL) golangci-lint run --build-tags e2e,browser ./...
	CGO_ENABLED=0 GOARCH=arm64 $(GO) vet ./optimizer/bayes/kernel ./optimizer/numeric/linalg ./optimizer/numeric/vecmath # assembly on amd64, Go elsewhere
	api/buf.sh lint
	api/buf.sh breaking
	$(GO) tool -modfile=tools/actionlint/go.mod actionlint

.PHONY: vulnerabilities
vulnerabilities: ## Look for known vulnerabilities in the code and its dependencies
	$(TOOL) govulncheck ./...

.PHONY: generate
generate: ## Generate the API's code and OpenAPI document, the JSON Schema and the CustomResourceDefinition
	api/buf.sh generate
	$(GO) run ./cmd/fantasia schema > study/file/testdata/study.schema.json
	$(GO) run ./cmd/fantasia schema --crd > deploy/helm/fantasia/crds/study-crd.yaml

.PHONY: manifests
manifests: ## Generate the chart's schema and README, and deploy/k8s
	CGO_ENABLED=0 $(GO) run ./deploy/helm/generate

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf bin dist examples/digits/digits
