// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Annotations of the Secrets that the bootstrap provider writes. They hold what must survive a move between management
// clusters, which drops status.
const (
	// ConfigContractAnnotation is the config contract of a machine config on its data Secret, for example "v1.14".
	ConfigContractAnnotation = "bootstrap.ichor.maesh.dev/config-contract"

	// RenderedHashAnnotation is the SHA-256 of a machine config on its data Secret, in hex; see TalosConfig's status.renderedHash.
	RenderedHashAnnotation = "bootstrap.ichor.maesh.dev/rendered-hash"

	// RenderedInputsAnnotation is the objects that went into a machine config on its data Secret, as JSON; see TalosConfig's
	// status.inputs. An object without a name has that of the Secret.
	RenderedInputsAnnotation = "bootstrap.ichor.maesh.dev/rendered-inputs"

	// InputsFingerprintAnnotation stands for the content of everything that a MachinePool's machine config was rendered from, on its data
	// Secret, in hex. While it stays the same, the Secret is left as it is, whatever a newer Ichor would render. It is hashed with a key
	// that only the cluster's secrets bundle gives, so that it tells nothing of what went in.
	InputsFingerprintAnnotation = "bootstrap.ichor.maesh.dev/inputs-fingerprint"
)

// Annotations of the Secret <cluster>-talosconfig.
const (
	// RotateAnnotation asks for a new client certificate. The user sets it to anything; each other value asks once, and so
	// does the same one after the annotation has been removed.
	RotateAnnotation = "bootstrap.ichor.maesh.dev/rotate"

	// RotatedAnnotation is the value of RotateAnnotation that was answered last.
	RotatedAnnotation = "bootstrap.ichor.maesh.dev/rotated"

	// IssuedCertificateAnnotation is the SHA-256 of the client certificate that was issued last, in hex. A talosconfig with
	// another one is a user's own.
	IssuedCertificateAnnotation = "bootstrap.ichor.maesh.dev/issued-certificate"
)

// Annotations of a Machine that say which config its node runs. They are for whoever changes the config of a node that runs, and go before what the
// machine was given to boot from. Ichor changes none yet and writes neither: without them, a machine that has joined runs what it was given.
const (
	// RunningHashAnnotation is the SHA-256 of the config that the node runs, in hex, as RenderedHashAnnotation has it.
	RunningHashAnnotation = "bootstrap.ichor.maesh.dev/running-hash"

	// RunningInputsAnnotation is the objects that went into the config that the node runs, as JSON, in the form of
	// status.inputs: [{"kind":"TalosConfigPatch","name":"gpu","generation":3,"layer":"Pool"}]. Without a name it is that of the machine's
	// TalosConfig. A patch counts as applied when it is in there with its present generation.
	RunningInputsAnnotation = "bootstrap.ichor.maesh.dev/running-inputs"
)
