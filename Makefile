# Fantasia. `make help` lists the targets.
SHELL := /bin/bash
GO ?= go
TOOL := $(GO) tool -modfile=tools/go.mod
BIN := bin/
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# Builds, tests and linters share what they compile only if all of them have these flags. Without
# tables for debuggers, which no program is linked with, a fifth less is to be compiled.
FLAGS := -trimpath -gcflags=all=-dwarf=false
export GOFLAGS := $(strip $(FLAGS) $(filter-out $(FLAGS),$(GOFLAGS)))
# Tests draw the same in every run, unless SEED says otherwise.
export RAPID_SEED := $(or $(SEED),1)

.DEFAULT_GOAL := help

# These folders have makefiles, whose targets can be made here as well.
ROOMS := internal/test deploy research
targets = $(filter-out help,$(shell sed -n 's/^\([a-z][a-z0-9-]*\):.*\#\# .*/\1/p' $(1)/Makefile))
define room
.PHONY: $(call targets,$(1))
$(call targets,$(1)):
	@$$(MAKE) -f $(1)/Makefile $$@
endef
$(foreach r,$(ROOMS),$(eval $(call room,$(r))))

##@ Use
.PHONY: help help-all
help: ## List the targets that most people need
	@awk -F ':.*## ' '/^##@ / {print substr($$0, 5)} /^[a-z][a-z0-9-]*:.*## / {printf "  %-20s %s\n", $$1, $$2}' Makefile
help-all: help ## List also the targets of internal/test, deploy and research
	@awk -F ':.*## ' '/^##@ / {print substr($$0, 5)} /^[a-z][a-z0-9-]*:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(ROOMS:%=%/Makefile)

.PHONY: run
run: bin/fantasia examples/digits/digits ## Tune a network on handwritten digits, eight trials at once (about a minute)
	bin/fantasia run examples/digits/study.yaml

##@ Build
.PHONY: build
build: ## Build bin/fantasia, bin/coordinator, bin/worker and bin/kubeworker as static programs
	CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/...

.PHONY: bin/fantasia
bin/fantasia:
	CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/fantasia

.PHONY: examples/digits/digits
examples/digits/digits:
	CGO_ENABLED=0 $(GO) build -o $@ ./examples/digits

.PHONY: generate
generate: ## Generate the API's code and OpenAPI document, the JSON Schema and the CustomResourceDefinition
	api/buf.sh generate
	$(GO) run ./cmd/fantasia schema > study/file/testdata/study.schema.json
	$(GO) run ./cmd/fantasia schema --crd > deploy/helm/fantasia/crds/study-crd.yaml

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf bin dist examples/digits/digits

##@ Check
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

##@ Test
# In these packages nothing runs concurrently, or only in optimizer/numeric/linalg, which has the
# race detector's attention itself: it would only make them five times as slow.
SEQUENTIAL := ./api/view ./coordinator/backup ./coordinator/curve ./coordinator/drive ./coordinator/engine ./coordinator/judge ./coordinator/pruner \
  ./coordinator/record ./coordinator/replay ./coordinator/scale/... ./coordinator/seal ./deploy/helm/... ./examples/... ./internal/exchange/crd ./internal/show/diagnosis \
  ./internal/exchange/export ./internal/exchange/migrate ./internal/show/htmlreport ./internal/assistant/raster ./internal/base/etcdfile ./internal/show/layout ./internal/show/picture/... \
  ./internal/test/architecture ./internal/test/damage ./internal/test/docs ./internal/test/examples ./optimizer/algorithms/... ./optimizer/bayes/... \
  ./optimizer/numeric/design ./optimizer/numeric/nsga2 ./optimizer/numeric/pareto ./optimizer/numeric/vecmath ./optimizer/papers/... ./optimizer/registry ./optimizer/setting \
  ./research/... ./scripts/... ./study/... ./worker/kubejob/kubecore
# These packages test whole programs, which have no race detector.
PROGRAMS := ./internal/test/chaos ./internal/test/e2e ./internal/test/load
# `make check` runs go vet. A result of an earlier run says nothing of another seed.
TEST := test -failfast -vet=off -timeout 20m $(if $(SEED),-count 1)

# Compilers and tests that seldom collect garbage take a sixth less processor time, for more memory.
test: export GOGC := 400
.PHONY: test
test: ## Run the tests, with the race detector where goroutines meet, against real NATS and etcd
	CGO_ENABLED=0 $(GO) $(TEST) $(SEQUENTIAL)
	CGO_ENABLED=1 $(GO) $(TEST) -race $$($(GO) list ./... | grep -vxF "$$($(GO) list $(SEQUENTIAL) $(PROGRAMS))")
	CGO_ENABLED=1 $(GO) $(TEST) -race -short -run '^TestConformance$$' ./optimizer/algorithms/... ./optimizer/papers/...
	CGO_ENABLED=0 $(GO) $(TEST) -tags mutants -run '^Test(Simulator|Shell)Notices$$' ./coordinator/engine ./internal/test/simulation
	CGO_ENABLED=0 $(GO) $(TEST) -tags failpoints ./internal/base/failpoint
	cd tools/release && CGO_ENABLED=0 $(GO) $(TEST) ./...

.PHONY: test-bare
test-bare: ## Run `make test` with nothing on the PATH but what README.md asks for
	scripts/bare make test

.PHONY: test-long
test-long: ## Kill whole programs at each of their steps, play faults of every kind and a load, and build images (minutes)
	cd deploy/images/build && CGO_ENABLED=0 $(GO) $(TEST) ./...
	CGO_ENABLED=0 $(GO) $(filter-out -count 1,$(TEST)) -count 1 $(PROGRAMS)

.PHONY: test-random
test-random: ## Run the tests that draw their inputs, with new draws; SEED repeats those of an earlier run
	scripts/test-random

.PHONY: fuzz
fuzz: test-random ## Do so, and run every fuzz target for FUZZTIME each (30s)
	scripts/fuzz $(or $(FUZZTIME),30s)

.PHONY: test-python
test-python: build ## Run the tests that need Python with scikit-learn
	scripts/test-python

.PHONY: test-client
test-client: build python-reference ## Test the Python client with Optuna, scikit-learn, XGBoost and LightGBM (minutes)
	scripts/test-client $(ARGS)
	PYTHON=$$(clients/python/setup test)/bin/python CGO_ENABLED=0 $(GO) test -tags python -count 1 -run '^TestPythonClient$$' ./internal/test/e2e

.PHONY: test-browser
test-browser: ## Look at the dashboard in a real Chromium (installs it on Debian, as root)
	scripts/test-browser $(ARGS)

.PHONY: go-bench
go-bench: ## Run the Go benchmarks (minutes)
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench . -benchmem -timeout 60m ./...
