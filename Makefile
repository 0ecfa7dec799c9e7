# `make help` lists what can be made; every target has its sentence behind ##.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REGISTRY   ?= localhost/openstack-upgrade
TAG        ?= dev
BUILDER    ?= $(firstword $(shell command -v docker podman 2>/dev/null) docker)
BUILD_ARGS ?=
BENCHTIME  ?= 1s
RUN        ?= .
FUZZTIME   ?= 1m
SERVICES   ?= glance
UPGRADES   ?= 1000
IDLE       ?= 10000
QUIET      ?= 10m

# Tools and the parts of a cluster are built from Go modules once and kept under the user's cache directory; what is
# printed is the directory they lie in.
binaries = go run ./test/cluster binaries --only $(1)
envtest  = kube-apiserver,kube-controller-manager,etcd,kubectl
scaled   = $(envtest),kube-scheduler,kwok
module   = github.com/c5c3/openstack-upgrade

# The experiments with faults that need a real API server.
disturbed = sweep|walks|views|replay|restart

##@ See it
.PHONY: demo
demo: ## Walk a real Glance from one release to the next on a real one-node Kubernetes (as root; SERVICES=glance,keystone for both); leaves the cluster up
	go run ./test/demo --services $(SERVICES)

.PHONY: cluster-up
cluster-up: ## Start the one-node Kubernetes of the demo and the end-to-end tests (as root)
	go run ./test/cluster up

.PHONY: cluster-down
cluster-down: ## Stop that cluster and remove every trace of it
	go run ./test/cluster down

##@ Prove it
.PHONY: test
test: vet test-unit test-integration test-faults test-scale ## Vet, unit and manifest tests, the tests against a real API server, and a share of the experiments with faults and at scale

.PHONY: vet
vet: ## go build and go vet, with the tests that need a cluster
	go build ./... # vet does not see a package without its tests where it has some
	go vet ./...
	go vet -tags e2e,cluster ./...

.PHONY: test-unit
test-unit: ## Tests that need nothing but Go, the manifests' among them
	go test -run '$(RUN)' $$(go list ./... | grep -Ev '^$(module)/test(/integration(/.*)?|/harness|/scale|/faults/($(disturbed)|mutants))?$$')
	@# What these read through the go command, its cache of test results cannot see.
	go test -run '$(RUN)' -count=1 ./test

.PHONY: test-integration
test-integration: ## Tests against a real API server, etcd and kube-controller-manager
	export KUBEBUILDER_ASSETS; KUBEBUILDER_ASSETS=$$($(call binaries,$(envtest))); \
	go test -run '$(RUN)' -timeout 20m ./test/harness ./test/integration/...

.PHONY: test-faults
test-faults: ## A bounded share of the experiments with faults, the model among them (SEED=… to repeat it)
	export KUBEBUILDER_ASSETS FAULTS_LINES; KUBEBUILDER_ASSETS=$$($(call binaries,$(envtest))); FAULTS_LINES=$$(mktemp); \
	failed=0; go test -p 1 -count=1 -run '$(RUN)' -timeout 20m $$(go list ./test/faults/... | grep -E '/($(disturbed)|mutants)$$') || failed=1; \
	go test -count=1 -run '$(if $(filter .,$(RUN)),WhateverTheCachesShow,$(RUN))' ./shared/upgrade || failed=1; \
	cat $$FAULTS_LINES; rm $$FAULTS_LINES; exit $$failed

.PHONY: test-scale
test-scale: ## A bounded share of what is proven by numbers, on fake nodes; it judges counts and no times
	export KUBEBUILDER_ASSETS; KUBEBUILDER_ASSETS=$$($(call binaries,$(scaled))); \
	go test -run '$(RUN)' -count=1 -timeout 10m ./test/scale

.PHONY: faults
faults: ## Every experiment with faults, whole, and a row for each (RUN=… PLAN=… for one plan, SEED=… to repeat what chance did)
	export KUBEBUILDER_ASSETS FAULTS=whole FAULTS_LINES; KUBEBUILDER_ASSETS=$$($(call binaries,$(envtest))); FAULTS_LINES=$$(mktemp); \
	failed=0; go test -p 1 -count=1 -v -run '$(RUN)' -timeout 4h ./test/faults/... ./shared/upgrade || failed=1; \
	echo; cat $$FAULTS_LINES; rm $$FAULTS_LINES; exit $$failed

.PHONY: mutants
mutants: ## Every deliberate break of the product, and the test that notices (PLAN='a name' for one)
	export KUBEBUILDER_ASSETS FAULTS=whole; KUBEBUILDER_ASSETS=$$($(call binaries,$(envtest))); \
	go test -count=1 -v -timeout 4h ./test/faults/mutants

.PHONY: e2e
e2e: ## The whole walk on the real node, webhook and cert-manager in the path (as root)
	go test -tags e2e -count=1 -timeout 60m -v -run '$(RUN)' ./test/e2e/...

.PHONY: cluster-test
cluster-test: ## The test cluster itself: what runs, what survives, and that nothing is left behind (as root)
	go test -tags cluster -count=1 -timeout 60m -v -run '$(RUN)' ./test/cluster/...

.PHONY: bench
bench: ## Every benchmark, and one table of what was measured beside the goals (BENCHTIME=5s for calmer figures)
	export KUBEBUILDER_ASSETS; KUBEBUILDER_ASSETS=$$($(call binaries,$(envtest))); \
	go run ./test/bench -benchtime $(BENCHTIME) -run '$(RUN)'

.PHONY: scale
scale: ## A thousand Glances upgraded at once, ten thousand at rest, and a table of figures; about 20 minutes (UPGRADES, IDLE, QUIET)
	export KUBEBUILDER_ASSETS; KUBEBUILDER_ASSETS=$$($(call binaries,$(scaled))); \
	go test -count=1 -timeout 60m -v ./test/scale -loud -upgrades $(UPGRADES) -idle $(IDLE) -quiet $(QUIET)

.PHONY: fuzz
fuzz: ## Fuzz whatever odd data can enter by (FUZZTIME=1m each); what is kept lies in testdata/fuzz
	for target in shared/release:FuzzParse shared/image:FuzzParse shared/image:FuzzReleaseOfTag webhook/admission:FuzzReview \
	    webhook/lint:FuzzManifest shared/api/v1alpha1:FuzzStatus controller/render:FuzzReadRecord certs/serving:FuzzPair \
	    controller/shelf:FuzzApart; do \
	  go test -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x ./$${target%:*}; done

.PHONY: lint
lint: ## golangci-lint with .golangci.yml, import rules and formatting included
	tools=$$($(call binaries,golangci-lint)); $$tools/golangci-lint run

.PHONY: verify
verify: ## Fail when generated files, formatting or go.mod are not up to date
	go mod tidy -diff
	test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(MAKE) generate
	git diff --exit-code -- shared/api deploy/base/crds certs/manifests

##@ Build it
.PHONY: build
build: ## Both binaries, static, in bin/
	for b in webhook controller; do \
	  CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=$(VERSION)" -o bin/$$b ./$$b; done

.PHONY: images
images: ## Both images (REGISTRY, TAG, BUILDER=docker|podman, BUILD_ARGS="--build-arg BASE_IMAGE=…")
	for b in webhook controller; do \
	  $(BUILDER) build -f Dockerfile.$$b --build-arg VERSION=$(VERSION) $(BUILD_ARGS) -t $(REGISTRY)/$$b:$(TAG) .; done

.PHONY: generate
generate: ## Deepcopy and CRD from the API types, cert-manager manifests from the typed objects
	tools=$$($(call binaries,controller-gen)); $$tools/controller-gen object crd:maxDescLen=2000 paths=./shared/api/... output:crd:dir=deploy/base/crds
	go run ./certs/issuing/write certs/manifests

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
