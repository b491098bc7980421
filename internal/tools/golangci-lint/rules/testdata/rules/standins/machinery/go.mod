module github.com/siderolabs/talos/pkg/machinery

go 1.26.5
