module github.com/maesh-dev/ichor

go 1.26.5

require (
	github.com/go-logr/logr v0.0.0
	github.com/siderolabs/talos/pkg/machinery v0.0.0
	google.golang.org/grpc v0.0.0
	k8s.io/apimachinery v0.0.0
	sigs.k8s.io/controller-runtime v0.0.0
)

// Stand-ins with just the names that the fixtures use: the rules look at import paths and types.
replace (
	github.com/go-logr/logr => ./standins/logr
	github.com/siderolabs/talos/pkg/machinery => ./standins/machinery
	google.golang.org/grpc => ./standins/grpc
	k8s.io/apimachinery => ./standins/apimachinery
	sigs.k8s.io/controller-runtime => ./standins/controller-runtime
)
