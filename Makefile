# Fantasia. `make help` lists the targets.
SHELL := /bin/bash
GO ?= go
TOOL := $(GO) tool -modfile=tools/go.mod
BIN := bin/
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build examples/digits/digits ## Tune the handwritten-digits network with 8 workers, in one process (about a minute)
	bin/fantasia run examples/digits/study.yaml

.PHONY: build
build: ## Build bin/fantasia, bin/coordinator and bin/worker, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/...

.PHONY: examples/digits/digits
examples/digits/digits:
	CGO_ENABLED=0 $(GO) build -trimpath -o $@ ./examples/digits

.PHONY: images
images: ## Make the container images, without an engine, into bin/images
	cd tools/images && CGO_ENABLED=0 $(GO) build -trimpath -o ../../bin/tools/images .
	bin/tools/images --root . --out bin/images --version '$(VERSION)' $(IMAGES)

# The packages that take the longest begin first, so that none is left alone in the end.
.PHONY: test
test: ## Run every test, with the race detector, against real NATS and etcd
	CGO_ENABLED=1 $(GO) test -race -timeout 20m ./internal/e2e ./optimizer/hebo ./...
	CGO_ENABLED=0 $(GO) test -tags mutants -run '^TestSimulatorNotices$$' ./coordinator/engine
	cd tools/images && CGO_ENABLED=0 $(GO) test ./...

.PHONY: e2e
e2e: ## Run the end-to-end tests on the Kubernetes cluster of KUBECONFIG (minutes; see scripts/e2e)
	scripts/e2e $(ARGS)

.PHONY: e2e-keda
e2e-keda: ## Test there autoscaling by a real KEDA over a real Prometheus (builds them: a quarter of an hour the first time)
	FANTASIA_E2E_KEDA=yes scripts/e2e -run '^TestKEDA$$'

.PHONY: test-observe
test-observe: ## Test traces, metrics and alerts with a real Jaeger, Prometheus and collector (builds them: minutes)
	$(GO) test -tags e2e -count 1 -timeout 60m $(ARGS) ./internal/observe

.PHONY: test-python
test-python: build ## Tune the unmodified scikit-learn script (needs Python with scikit-learn)
	scripts/test-python

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each (default 30s)
	scripts/fuzz $(or $(FUZZTIME),30s)

.PHONY: bench
bench: ## Run the benchmarks (minutes)
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench . -benchmem -timeout 60m ./...

.PHONY: bench-linalg
bench-linalg: ## Compare the linear algebra with gonum's and OpenBLAS's (minutes)
	CGO_ENABLED=0 scripts/bench-linalg

.PHONY: compare
compare: build examples/digits/digits ## Compare gp with random on the digits study over 10 seeds (half an hour)
	$(GO) run ./scripts/compare

.PHONY: benchmark
benchmark: ## Make the tables of docs/benchmarks.md anew, with other tuners (about two days; goes on where it was)
	benchmarks/all

.PHONY: benchmark-quick
benchmark-quick: ## Compare with some other tuners on a few tasks (minutes, after 6 GB of Python)
	benchmarks/all quick

.PHONY: check
check: ## Check the formatting, and run go vet
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); [ -z "$$unformatted" ] || { echo "not formatted: $$unformatted" >&2; exit 1; }
	CGO_ENABLED=0 $(GO) vet ./...

.PHONY: lint
lint: ## Lint the Go code, the API and the workflows
	$(TOOL) golangci-lint run --build-tags e2e ./...
	CGO_ENABLED=0 GOARCH=arm64 $(GO) vet ./optimizer/kernel ./optimizer/linalg ./optimizer/vecmath # assembly on amd64, Go elsewhere
	api/buf.sh lint
	api/buf.sh breaking
	$(GO) tool -modfile=tools/actionlint/go.mod actionlint

.PHONY: vulnerabilities
vulnerabilities: ## Look for known vulnerabilities in what is linked
	$(TOOL) govulncheck ./...

.PHONY: generate
generate: ## Generate the API's code, the JSON Schema and the CustomResourceDefinition again
	api/buf.sh generate
	$(GO) run ./cmd/fantasia schema > study/testdata/study.schema.json
	$(GO) run ./cmd/fantasia schema --crd > deploy/helm/fantasia/files/study-crd.yaml

.PHONY: manifests
manifests: ## Make the chart's schema and README, and deploy/k8s, again
	CGO_ENABLED=0 $(GO) run ./deploy/helm/generate

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin examples/digits/digits
