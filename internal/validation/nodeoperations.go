// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // names of time zones mean the same wherever this runs

	"github.com/google/cel-go/cel"
	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/expression"
)

// gateVariable is what an expression of a gate calls the object.
const gateVariable = "object"

// nodeOperations looks at how nodes may be disturbed.
func (r *Report) nodeOperations(path *field.Path, spec *controlplanev1.NodeOperationsSpec) {
	r.windows(path.Child("windows"), spec.Windows)
	r.skipSelectors(path.Child("drain", "skipSelectors"), spec.Drain.SkipSelectors)

	for i := range spec.Gates {
		r.gate(path.Child("gates").Key(spec.Gates[i].Name), &spec.Gates[i])
	}

	for i := range spec.Pools {
		pool := path.Child("pools").Key(spec.Pools[i].Name)
		r.selector(pool.Child("machineSelector"), spec.Pools[i].MachineSelector)
		r.windows(pool.Child("windows"), spec.Pools[i].Windows)
		r.skipSelectors(pool.Child("drain", "skipSelectors"), spec.Pools[i].Drain.SkipSelectors)
	}

	snapshot := path.Child("etcdSnapshot")
	r.secretReference(snapshot.Child("s3", "credentialsSecretRef"), spec.EtcdSnapshot.S3.CredentialsSecretRef)

	if spec.EtcdSnapshot.Mode == controlplanev1.SnapshotOff && (spec.EtcdSnapshot.Directory != "" || spec.EtcdSnapshot.S3.Bucket != "") {
		r.warn(snapshot.Child("mode"), "is Off, and etcdSnapshot says where to put a snapshot: set BeforeUpgrade to have one taken")
	}
}

func (r *Report) windows(path *field.Path, windows []controlplanev1.MaintenanceWindow) {
	for i := range windows {
		r.window(path.Key(windows[i].Name), &windows[i])
	}
}

func (r *Report) window(path *field.Path, window *controlplanev1.MaintenanceWindow) {
	// The parser takes a time zone in front of the five fields; that has a field of its own.
	if strings.Contains(window.Cron, "=") {
		r.fail(path.Child("cron"), "must be five fields and no time zone: set timeZone")
	} else if _, err := cron.ParseStandard(window.Cron); err != nil {
		r.fail(path.Child("cron"), fmt.Sprintf(`%v: must be minute, hour, day of the month, month, day of the week, such as "0 2 * * 6"`, err))
	}

	if _, err := time.LoadLocation(window.TimeZone); err != nil || window.TimeZone == "Local" {
		r.fail(path.Child("timeZone"), `must be a name of the time zone database, such as "Europe/Berlin" or "UTC"`)
	}
}

func (r *Report) gate(path *field.Path, gate *controlplanev1.Gate) {
	object := path.Child("object")

	if version, err := schema.ParseGroupVersion(gate.Object.APIVersion); err != nil || version.Version == "" {
		r.fail(object.Child("apiVersion"), `must be a version, with the group in front of it if there is one, such as "v1" or "apps/v1"`)
	}

	r.objectName(object.Child("name"), gate.Object.Kind, gate.Object.Name)

	if gate.Object.Namespace != "" {
		r.objectName(object.Child("namespace"), "Namespace", gate.Object.Namespace)
	}

	environment, err := cel.NewEnv(cel.Variable(gateVariable, cel.DynType))
	if err == nil {
		_, err = expression.ParseBoolean(gate.Expression, environment)
	}

	if err != nil {
		r.fail(path.Child("expression"), fmt.Sprintf("not an expression over the object that is true or false: %v", err))
	}
}

func (r *Report) skipSelectors(path *field.Path, selectors []metav1.LabelSelector) {
	for i := range selectors {
		at := path.Index(i)
		r.selector(at, &selectors[i])

		if len(selectors[i].MatchLabels) == 0 && len(selectors[i].MatchExpressions) == 0 {
			r.fail(at, "selects every pod, so that no node would be drained: say which pods stay")
		}
	}
}
