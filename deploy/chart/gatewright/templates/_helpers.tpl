{{/* The name of everything: that of the release, with the chart's unless it is in there already. */}}
{{- define "gatewright.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What the pods are chosen by; it can never change. */}}
{{- define "gatewright.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gatewright.labels" -}}
{{ include "gatewright.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gatewright.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "gatewright.name" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The namespaces that get a Role; empty where rights are cluster-wide. */}}
{{- define "gatewright.checkNamespaces" -}}
{{- if and .Values.rbac.namespaced (not .Values.watchNamespaces) -}}
{{- fail "rbac.namespaced needs watchNamespaces: the namespaces in which Gatewright gets its rights" -}}
{{- end -}}
{{- end -}}

{{/* Where the GatewayConfig is kept. */}}
{{- define "gatewright.configNamespace" -}}
{{- include "gatewright.checkNamespaces" . -}}
{{- $namespace := .Values.gatewayConfig.namespace -}}
{{- if .Values.rbac.namespaced -}}
{{- $namespace = default (first .Values.watchNamespaces) $namespace -}}
{{- if not (has $namespace .Values.watchNamespaces) -}}
{{- fail (printf "gatewayConfig.namespace %s is none of watchNamespaces, so with rbac.namespaced it could not be read" $namespace) -}}
{{- end -}}
{{- end -}}
{{- default .Release.Namespace $namespace -}}
{{- end -}}

{{/* Who the rights are for. */}}
{{- define "gatewright.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "gatewright.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
