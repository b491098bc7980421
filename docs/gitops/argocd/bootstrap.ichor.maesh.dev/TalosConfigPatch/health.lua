-- SPDX-License-Identifier: Apache-2.0
-- Health of a TalosConfigPatch for Argo CD: Ready says it.
local annotations = obj.metadata.annotations
if annotations ~= nil and annotations["cluster.x-k8s.io/paused"] ~= nil then
  return { status = "Suspended", message = "Paused by its annotation" }
end

local status = obj.status
if status == nil or status.conditions == nil then
  return { status = "Progressing", message = "Waiting for the manager to look at it" }
end

local ready = nil
for _, condition in ipairs(status.conditions) do
  if condition.type == "Paused" and condition.status == "True" then
    return { status = "Suspended", message = condition.message }
  end
  if condition.type == "Ready" then
    ready = condition
  end
end

if status.observedGeneration == nil or status.observedGeneration < obj.metadata.generation then
  return { status = "Progressing", message = "Waiting for the manager to see the change" }
end
if ready == nil or ready.status == "Unknown" then
  return { status = "Progressing", message = ready ~= nil and ready.message or "Waiting for the manager to look at it" }
end
if ready.status == "True" then
  return { status = "Healthy", message = ready.message }
end
return { status = "Degraded", message = ready.message }
