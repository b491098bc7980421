-- SPDX-License-Identifier: Apache-2.0
-- Health of a TalosConfigTemplate for Argo CD: nothing works on it, so it is healthy when it is there.
return { status = "Healthy", message = "" }
