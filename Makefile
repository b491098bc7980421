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

# The race detector needs cgo; TESTFLAGS adds to it (for example TESTFLAGS='-run Merge -count 1').
TESTFLAGS ?=
FUZZTIME ?= 1m

VERSION ?= $(shell git describe --tags --always --dirty --match 'v*' 2>/dev/null || echo unknown)
MODULE := github.com/maesh-dev/ichor
LDFLAGS := -s -w -X $(MODULE)/internal/version.build=$(VERSION)

# A provider is generated for once its types are there.
PROVIDERS := $(foreach p,bootstrap controlplane,$(if $(wildcard api/$(p)/v1alpha1/*.go),$(p)))

##@ General

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z][a-z-]*:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: clean
clean: ## Remove what the targets below have built
	rm -rf $(BIN) _artifacts

##@ Generate

.PHONY: generate
generate: generate-documents generate-deepcopy generate-crds generate-rbac ## Regenerate everything that is generated

.PHONY: generate-documents
generate-documents: ## Typed Talos documents, from the types of Talos machinery
	go run ./internal/codegen

.PHONY: generate-deepcopy
generate-deepcopy: generate-documents ## DeepCopy methods of the API types
	$(CONTROLLER_GEN) object paths=./api/...

.PHONY: generate-crds
generate-crds: $(PROVIDERS:%=generate-crds-%) ## CustomResourceDefinitions

generate-crds-%: generate-deepcopy
	rm -f config/$*/crd/bases/*.yaml
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./api/$*/... output:crd:dir=config/$*/crd/bases

.PHONY: generate-rbac
generate-rbac: $(foreach p,$(PROVIDERS),$(if $(wildcard $(p)/main.go),generate-rbac-$(p))) ## Roles, from the markers beside the code that needs them

generate-rbac-%: generate-deepcopy
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./$*/... output:rbac:dir=config/$*/rbac

##@ Build

.PHONY: build
build: $(BIN)/clusterctl-ichor $(BIN)/ichor-bootstrap-manager ## Build the manager and the clusterctl plugin into bin/

.PHONY: $(BIN)/clusterctl-ichor
$(BIN)/clusterctl-ichor:
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/clusterctl-ichor

.PHONY: $(BIN)/ichor-bootstrap-manager
$(BIN)/ichor-bootstrap-manager:
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./bootstrap

##@ Test

.PHONY: test
test: test-tools test-unit ## Everything: test tools, then all tests with the race detector

.PHONY: test-tools
test-tools: ## Build the real API server, etcd and CAPI that tests run against (cached)
	go run ./test/tools/build

.PHONY: test-unit
test-unit: ## All tests of this module with the race detector
	CGO_ENABLED=1 go test -race $(TESTFLAGS) ./...
