# SPDX-License-Identifier: Apache-2.0

# Every step of building, checking and testing Ichor. Needs Go, make, git and a C compiler (for the
# race detector); every other tool is built from a Go module pinned under internal/tools or test/tools.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := bin
TOOL := go tool -modfile=internal/tools/tools.mod
CONTROLLER_GEN := $(TOOL) controller-gen
GOLANGCI_LINT_DIR := internal/tools/golangci-lint
GOLANGCI_LINT := $(BIN)/tools/golangci-lint

# More flags for go test, for example TESTFLAGS='-run Merge -count 1'.
TESTFLAGS ?=
# More flags for make bench, and how many seeds make test-long tries, each for how long.
BENCHFLAGS ?=
SEEDS ?= 5
TURMOIL ?= 3m
# How many control-plane machines make demo begins with: 1 or 3.
DEMO_CONTROL_PLANES ?= 1
# How many lives of a control plane make test-long draws.
LIVES ?= 200
# How long each fuzz target runs, and how often it tries to make an input smaller. Go does so for a minute with each new one, and nothing else.
FUZZTIME ?= 1m
FUZZMINIMIZETIME ?= 10x
# The infrastructure provider of make test-e2e, and how many Machines its MachineDeployment has.
E2E_INFRA ?= capd
E2E_MACHINES ?= $(if $(filter sim,$(E2E_INFRA)),50,200)

VERSION ?= $(shell git describe --tags --always --dirty --match 'v*' 2>/dev/null || echo unknown)
LDFLAGS = -s -w -X main.version=$(VERSION)

# A provider takes part in generation as soon as its types, its manager and its webhooks are there.
PROVIDERS := $(foreach p,bootstrap controlplane,$(if $(wildcard api/$(p)/v1alpha1/*.go),$(p)))
MANAGERS := $(foreach p,$(PROVIDERS),$(if $(wildcard $(p)/main.go),$(p)))
WEBHOOKS := $(foreach p,$(MANAGERS),$(if $(wildcard $(p)/webhooks/*.go),$(p)))

INFRASTRUCTURE := test/infrastructure
LONGHORN := test/longhornsim

# Every module of the repository but the fixtures, tracked or about to be.
MODULE_DIRS = $(sort $(dir $(shell git ls-files -co --exclude-standard -- go.mod '*/go.mod' ':!:*/testdata/*')))

##@ General

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z][a-z0-9-]*:.*## / {printf "  %-24s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: clean
clean: ## Remove what the targets below have built
	rm -rf $(BIN) _artifacts

##@ Generate

.PHONY: generate
generate: generate-documents generate-deepcopy generate-crds generate-rbac generate-webhooks generate-metrics generate-infrastructure generate-longhorn ## Regenerate everything that is generated

.PHONY: generate-documents
generate-documents: ## Typed Talos documents, their reference and first versions, from the source of Talos machinery
	go run ./internal/codegen

.PHONY: generate-deepcopy
generate-deepcopy: generate-documents ## DeepCopy methods of the API types
	$(CONTROLLER_GEN) object paths=./api/... paths=./$(INFRASTRUCTURE)/api/... paths=./$(LONGHORN)/api/...

.PHONY: generate-crds
generate-crds: $(PROVIDERS:%=generate-crds-%) ## CustomResourceDefinitions

generate-crds-%: generate-deepcopy
	rm -f config/$*/crd/bases/*.yaml
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./api/$*/... output:crd:dir=config/$*/crd/bases

.PHONY: generate-rbac
generate-rbac: $(MANAGERS:%=generate-rbac-%) ## Roles, from the markers beside the code that needs them

generate-rbac-%: generate-deepcopy
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./$*/... output:rbac:dir=config/$*/rbac

.PHONY: generate-webhooks
generate-webhooks: $(WEBHOOKS:%=generate-webhooks-%) ## Webhook configurations, from the markers beside the webhooks

generate-webhooks-%: generate-deepcopy
	$(CONTROLLER_GEN) webhook paths=./$*/webhooks/... output:webhook:dir=config/$*/webhook

.PHONY: generate-infrastructure
generate-infrastructure: generate-deepcopy ## CustomResourceDefinitions and roles of the simulated infrastructure provider
	rm -f $(INFRASTRUCTURE)/config/crd/bases/*.yaml
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./$(INFRASTRUCTURE)/api/... output:crd:dir=$(INFRASTRUCTURE)/config/crd/bases
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./$(INFRASTRUCTURE)/... output:rbac:dir=$(INFRASTRUCTURE)/config/rbac

.PHONY: generate-longhorn
generate-longhorn: generate-deepcopy ## CustomResourceDefinitions of the simulated Longhorn
	rm -f $(LONGHORN)/config/crd/*.yaml
	$(CONTROLLER_GEN) crd paths=./$(LONGHORN)/api/... output:crd:dir=$(LONGHORN)/config/crd

.PHONY: generate-metrics
generate-metrics: generate-deepcopy ## The table of metrics in docs/observability.md
	go run ./internal/tools/metricsdoc

##@ Check

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run all linters
	$(GOLANGCI_LINT) run ./...
	$(GOLANGCI_LINT) fmt --diff

.PHONY: lint-fix
lint-fix: $(GOLANGCI_LINT) ## Run all linters and let them mend what they can
	$(GOLANGCI_LINT) fmt
	$(GOLANGCI_LINT) run --fix ./...

# Always asked of the go command, which knows whether anything changed.
.PHONY: $(GOLANGCI_LINT)
$(GOLANGCI_LINT):
	@[ -x $@ ] || echo "building golangci-lint with kube-api-linter: some minutes, once"
	@go -C $(GOLANGCI_LINT_DIR) build -buildvcs=false -o $(abspath $@) .

# One after the other whatever -j says: the last step looks at what the others leave behind.
.PHONY: verify
verify: ## Regenerate, check modules, links and lint rules, lint; fail if the tree is dirty afterwards
	$(MAKE) generate
	$(MAKE) verify-tidy
	$(MAKE) verify-docs
	$(MAKE) verify-lint-rules
	$(MAKE) lint
	$(MAKE) verify-clean

.PHONY: verify-tidy
verify-tidy: ## Check that go.mod and go.sum of every module are tidy
	@for dir in $(MODULE_DIRS); do \
		echo "go mod tidy -diff in $$dir"; \
		go -C "$$dir" mod tidy -diff || { echo "to mend it: go -C $$dir mod tidy"; exit 1; }; \
	done
	@$(MAKE) tidy-tools TIDY=-diff

# tools.mod lies beside no package of its own, so tidy must not see those of this module.
.PHONY: tidy-tools
tidy-tools: ## Tidy internal/tools/tools.mod, which go mod tidy -modfile would fill with our own needs
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	cp internal/tools/tools.mod "$$tmp/go.mod"; cp internal/tools/tools.sum "$$tmp/go.sum"; \
	echo "go mod tidy $(TIDY) for internal/tools/tools.mod"; \
	go -C "$$tmp" mod tidy $(TIDY) || { echo "to mend it: make tidy-tools"; exit 1; }; \
	if [ -z "$(TIDY)" ]; then cp "$$tmp/go.mod" internal/tools/tools.mod; cp "$$tmp/go.sum" internal/tools/tools.sum; fi

.PHONY: verify-docs
verify-docs: ## Check that links between the Markdown files lead somewhere
	go run ./internal/tools/doclinks

.PHONY: verify-lint-rules
verify-lint-rules: $(GOLANGCI_LINT) ## Prove on fixtures that each lint rule of ours can fail
	go -C $(GOLANGCI_LINT_DIR) test -count=1 ./rules

.PHONY: verify-clean
verify-clean:
	@dirty=$$(git status --porcelain --untracked-files=all); [ -z "$$dirty" ] || { \
		printf '%s\n' "the tree is dirty:" "$$dirty"; \
		git --no-pager diff --stat; \
		echo "to mend it: run make generate, look at the changes, commit them"; exit 1; }

##@ Test

.PHONY: test
test: test-tools ## Everything, with the race detector, on a real API server, etcd and CAPI
	CGO_ENABLED=1 go test -race -timeout 40m $(TESTFLAGS) ./...

.PHONY: test-unit
test-unit: ## Tests that need no test tools, with the race detector: the inner loop
	CGO_ENABLED=1 go test -race $(TESTFLAGS) $$(go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... | \
		grep -v github.com/maesh-dev/ichor/test/ | cut -d ' ' -f 1)

.PHONY: test-long
test-long: test-tools ## Tests that find more the longer they run: managers killed at random for TURMOIL, with SEEDS seeds; control planes with real etcd members
	go test -count=1 -timeout 0 -v ./test/rivals -turmoil $(TURMOIL) -seeds $(SEEDS)
	go test -count=1 -timeout 0 -v ./test/controlplane -long
	go test -count=1 -timeout 0 -v ./test/scenario -run Outage -long
	go test -count=1 -timeout 0 ./controlplane/reconcilers/taloscontrolplane -run BootstrapOnce -lives $(LIVES)

.PHONY: test-tools
test-tools: ## Build the real API server, etcd and CAPI that the tests run (cached; some minutes at first)
	go run ./test/tools/build

.PHONY: test-e2e
test-e2e: test-tools ## Install with clusterctl, scale a MachineDeployment on the infrastructure provider E2E_INFRA (capd, sim), crash sim
	E2E_INFRA=$(E2E_INFRA) go test -count=1 -timeout 60m -v ./test/e2e -machines $(E2E_MACHINES)

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME
	@grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -r dirname | sort -u | while read -r dir; do \
		for target in $$(go test -list '^Fuzz' "$$dir" | grep '^Fuzz'); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime $(FUZZMINIMIZETIME) "$$dir" || exit 1; \
		done; \
	done

.PHONY: bench
bench: test-tools ## Measure what is promised of speed, writes and memory; BENCHFLAGS='-run machines' for a part
	go run ./test/bench $(BENCHFLAGS)

##@ Demo

.PHONY: demo
demo: ## Make a cluster of simulated machines with real Kubernetes from a template, say what happens and why, scale it, explain a patch
	DEMO_CONTROL_PLANES=$(DEMO_CONTROL_PLANES) go run ./test/demo up

.PHONY: demo-down
demo-down: ## End what make demo has started
	go run ./test/demo down

##@ Build

.PHONY: build
build: $(BIN)/clusterctl-ichor $(BIN)/ichor-bootstrap-manager $(BIN)/ichor-controlplane-manager ## Build the clusterctl plugin and the managers into bin/

.PHONY: $(BIN)/clusterctl-ichor
$(BIN)/clusterctl-ichor:
	go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/clusterctl-ichor

.PHONY: $(BIN)/ichor-bootstrap-manager
$(BIN)/ichor-bootstrap-manager:
	go build -ldflags '$(LDFLAGS)' -o $@ ./bootstrap

.PHONY: $(BIN)/ichor-controlplane-manager
$(BIN)/ichor-controlplane-manager:
	go build -ldflags '$(LDFLAGS)' -o $@ ./controlplane

##@ Release

# A release is named by its tag: make release-manifests VERSION=v0.1.0 REGISTRY=registry.example.com/ichor
RELEASE_DIR ?= _artifacts/release/$(VERSION)
REPOSITORY_DIR ?= _artifacts/repository
REGISTRY ?=
# A repository may also be made between releases; the version is then that of clusterctl-settings.json.
REPOSITORY_VERSION ?= $(if $(filter v%,$(VERSION)),$(VERSION),$(shell sed -n 's/.*"nextVersion": "\(.*\)".*/\1/p' clusterctl-settings.json))

.PHONY: release-manifests
release-manifests: ## Write the files of release VERSION, with images of REGISTRY, into _artifacts/release
	go run ./internal/tools/release -version '$(VERSION)' -registry '$(REGISTRY)' -output '$(RELEASE_DIR)'

.PHONY: local-repository
local-repository: ## Write a repository for clusterctl, with images of REGISTRY, and its clusterctl.yaml into _artifacts/repository
	go run ./internal/tools/release -repository -version '$(REPOSITORY_VERSION)' -registry '$(REGISTRY)' -output '$(REPOSITORY_DIR)'
