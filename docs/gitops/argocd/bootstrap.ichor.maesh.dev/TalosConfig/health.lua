-- SPDX-License-Identifier: Apache-2.0
-- Health of a TalosConfig for Argo CD: waiting for somebody else is progress, a fault that a user must mend is not.
local waiting = {
  WaitingForOwner = true,
  WaitingForCluster = true,
  WaitingForClusterInfrastructureReady = true,
  WaitingForControlPlaneEndpoint = true,
}

local annotations = obj.metadata.annotations
if annotations ~= nil and annotations["cluster.x-k8s.io/paused"] ~= nil then
  return { status = "Suspended", message = "Paused by its annotation" }
end

local status = obj.status
if status == nil or status.conditions == nil then
  return { status = "Progressing", message = "Waiting for the manager to look at it" }
end

local conditions = {}
for _, condition in ipairs(status.conditions) do
  conditions[condition.type] = condition
end

local paused = conditions["Paused"]
if paused ~= nil and paused.status == "True" then
  return { status = "Suspended", message = paused.message }
end

if status.observedGeneration == nil or status.observedGeneration < obj.metadata.generation then
  return { status = "Progressing", message = "Waiting for the manager to see the change" }
end

local ready = conditions["Ready"]
if ready == nil or ready.status == "Unknown" then
  return { status = "Progressing", message = "Waiting for the manager to look at it" }
end
if ready.status == "True" then
  return { status = "Healthy", message = ready.message }
end

local bundle = conditions["SecretsBundleAvailable"]
if bundle ~= nil and bundle.status == "False" then
  return { status = "Degraded", message = ready.message }
end

local rendered = conditions["ConfigRendered"]
if rendered ~= nil and rendered.status == "False" and rendered.reason ~= "WaitingForInputs" then
  return { status = "Degraded", message = ready.message }
end

-- NotAvailable without a config is what a Machine or Cluster that is being deleted has.
local secret = conditions["DataSecretAvailable"]
if secret ~= nil and secret.status == "False" then
  local unrendered = rendered ~= nil and rendered.status == "False"
  if waiting[secret.reason] or (secret.reason == "NotAvailable" and unrendered) then
    return { status = "Progressing", message = ready.message }
  end
end

return { status = "Degraded", message = ready.message }
