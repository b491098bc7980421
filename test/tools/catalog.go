// SPDX-License-Identifier: Apache-2.0

package tools

// Names of the files that can be asked for.
const (
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	Kubectl               = "kubectl"
	Etcd                  = "etcd"

	// CAPICore is the Cluster API core manager.
	CAPICore = "capi-core-manager"

	// Clusterctl is Cluster API's command line, for moves between management clusters.
	Clusterctl = "clusterctl"

	// CAPICoreComponents is not a program: it is the YAML that a Cluster API release ships as core-components.yaml,
	// with definitions, roles and webhooks, made by kustomize from the sources of the same module as CAPICore.
	CAPICoreComponents = "core-components.yaml"

	// CAPD is the manager of Cluster API's infrastructure provider for tests. Its in-memory backend makes Nodes without machines.
	CAPD = "capd-manager"

	// CAPDComponents is the YAML that a Cluster API release ships for CAPD.
	CAPDComponents = "infrastructure-components-development.yaml"

	// MachineryValidate112 and MachineryValidate113 load and validate machine configurations with the machinery of
	// Talos 1.12 and 1.13.
	MachineryValidate112 = "machinery-validate-1.12"
	MachineryValidate113 = "machinery-validate-1.13"
)

// tool is one row of the catalog.
type tool struct {
	name string

	// module is the nested module's directory, below this package's.
	module string

	// modfile names another file than go.mod, for a module that is built against several versions of a dependency.
	modfile string

	// versionOf is the module in the nested go.mod whose version is the tool's version.
	versionOf string

	// mainPackage is what is built. Empty for a file that is made by make.
	mainPackage string

	// versionPackages hold the gitVersion family of variables. Programs from the Kubernetes world report them, and
	// some compare them, so a build without them would behave unlike a release.
	versionPackages []string

	// make produces a file that is not a Go program.
	make func(job) error

	// needs are other rows that make uses.
	needs []string
}

func (t tool) goModFile() string {
	if t.modfile != "" {
		return t.modfile
	}
	return "go.mod"
}

// catalog is in the order in which a build of everything proceeds: quick things that are needed everywhere first.
var catalog = []tool{
	{
		name: Etcd, module: "etcd",
		versionOf:   "go.etcd.io/etcd/server/v3",
		mainPackage: "go.etcd.io/etcd/server/v3",
	},
	kubernetes(KubeAPIServer),
	kubernetes(KubeControllerManager),
	kubernetes(Kubectl),
	{
		name: CAPICore, module: "capi",
		versionOf:       "sigs.k8s.io/cluster-api",
		mainPackage:     "sigs.k8s.io/cluster-api/core",
		versionPackages: []string{"sigs.k8s.io/cluster-api/version"},
	},
	{
		name: Clusterctl, module: "capi",
		versionOf:       "sigs.k8s.io/cluster-api",
		mainPackage:     "sigs.k8s.io/cluster-api/cmd/clusterctl",
		versionPackages: []string{"sigs.k8s.io/cluster-api/version"},
	},
	{
		name: CAPICoreComponents, module: "capi",
		versionOf: "sigs.k8s.io/cluster-api",
		make:      kustomizeModule("sigs.k8s.io/cluster-api", "core/config/default"),
		needs:     []string{Kubectl},
	},
	machineryValidate(MachineryValidate112, "talos-1.12.mod"),
	machineryValidate(MachineryValidate113, "go.mod"),
	{
		name: CAPD, module: "capd",
		versionOf:       "sigs.k8s.io/cluster-api/test",
		mainPackage:     "sigs.k8s.io/cluster-api/test/infrastructure/docker",
		versionPackages: []string{"sigs.k8s.io/cluster-api/version"},
	},
	{
		name: CAPDComponents, module: "capd",
		versionOf: "sigs.k8s.io/cluster-api/test",
		make:      kustomizeModule("sigs.k8s.io/cluster-api/test", "infrastructure/docker/config/default"),
		needs:     []string{Kubectl},
	},
}

func kubernetes(name string) tool {
	return tool{
		name: name, module: "kubernetes",
		versionOf:   "k8s.io/kubernetes",
		mainPackage: "k8s.io/kubernetes/cmd/" + name,
		versionPackages: []string{
			"k8s.io/component-base/version",
			"k8s.io/client-go/pkg/version",
		},
	}
}

func machineryValidate(name, modfile string) tool {
	return tool{
		name: name, module: "machinery", modfile: modfile,
		versionOf:   "github.com/siderolabs/talos/pkg/machinery",
		mainPackage: ".",
	}
}
