{{/*
What the binary asks of the API server, and nothing else; docs/kubernetes.md gives the reason of each rule. A test runs the
controller with exactly these rights, and fails where one is missing and where one is never used.
*/}}

{{/* On objects in namespaces: everywhere by a ClusterRole, or in some namespaces by a Role in each. */}}
{{- define "gatewright.rulesInNamespaces" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [backendtlspolicies, gateways, grpcroutes, httproutes, listenersets, tcproutes, tlsroutes, udproutes]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources:
  - backendtlspolicies/status
  - gateways/status
  - grpcroutes/status
  - httproutes/status
  - listenersets/status
  - tcproutes/status
  - tlsroutes/status
  - udproutes/status
  verbs: [patch]
{{- if .Values.rbac.ownerReferences }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways/finalizers]
  verbs: [update]
{{- end }}
- apiGroups: [gateway.networking.k8s.io]
  resources: [referencegrants]
  verbs: [list, watch]
- apiGroups: [gateway.networking.x-k8s.io]
  resources: [xbackendtrafficpolicies]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.x-k8s.io]
  resources: [xbackendtrafficpolicies/status]
  verbs: [patch]
- apiGroups: [gatewright.dev]
  resources: [gatewayconfigs]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [configmaps, secrets]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch, create, patch, delete]
{{ include "gatewright.rulesOfEvents" . }}
{{- end -}}

{{- define "gatewright.rulesOfEvents" -}}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}

{{/* On what belongs to no namespace: always by a ClusterRole. */}}
{{- define "gatewright.rulesOfCluster" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses]
  verbs: [get, list, watch, patch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list, watch]
{{- end -}}

{{/* In the namespace of the replicas: who writes, and what each replica observed. */}}
{{- define "gatewright.rulesOfReplicas" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, patch, delete]
{{- end -}}
