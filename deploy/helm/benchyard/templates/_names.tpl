{{- define "benchyard.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "benchyard.runnersNamespace" -}}
{{ .Values.runners.namespace | default (printf "%s-runners" .Release.Namespace) }}
{{- end }}

{{- define "benchyard.secrets" -}}
{{ .Values.existingSecret | default (printf "%s-secrets" (include "benchyard.name" .)) }}
{{- end }}

{{- define "benchyard.databaseSecret" -}}
{{ .Values.database.existingSecret | default (printf "%s-postgres" (include "benchyard.name" .)) }}
{{- end }}

{{- /* Takes one of .Values.images. A digest goes before the tag. */ -}}
{{- define "benchyard.image" -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag }}{{ end }}
{{- end }}

{{- define "benchyard.labels" -}}
app.kubernetes.io/name: benchyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "benchyard.orchestrator" -}}
app.kubernetes.io/name: benchyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: orchestrator
{{- end }}

{{- define "benchyard.postgres" -}}
app.kubernetes.io/name: benchyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: postgres
{{- end }}

{{- /* The variable that the cluster sets for a Service, without its end. */ -}}
{{- define "benchyard.serviceVariable" -}}
{{ include "benchyard.name" . | upper | replace "-" "_" }}
{{- end }}

{{- define "benchyard.pullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "benchyard.settings" -}}
{{- $settings := dict "BENCHYARD_INSTANCE" (include "benchyard.name" .) "BENCHYARD_RUNNER_IMAGE" (include "benchyard.image" .Values.images.runner) }}
{{- if eq .Values.runners.podSecurity "restricted" }}
{{- $_ := set $settings "BENCHYARD_KUBE_POD_SECURITY" "restricted" }}
{{- end }}
{{- if .Values.ingress.enabled }}
{{- $_ := set $settings "BENCHYARD_PUBLIC_URL" (printf "https://%s" .Values.ingress.host) }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{- if kindIs "map" $value }}
{{- $_ := set $settings $name (toJson $value) }}
{{- else if and (kindIs "float64" $value) (eq (float64 $value) (float64 (int64 $value))) }}
{{- $_ := set $settings $name (int64 $value | toString) }}
{{- else }}
{{- $_ := set $settings $name (toString $value) }}
{{- end }}
{{- end }}
{{- range $name := keys $settings | sortAlpha }}
{{ $name }}: {{ get $settings $name | quote }}
{{- end }}
{{- end }}
