{{/* The chart's name, or its override. */}}
{{- define "slotwright.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* What every object is called: the release's name, with the chart's name in it. 55 characters leave room for suffixes. */}}
{{- define "slotwright.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 55 | trimSuffix "-" }}
{{- else if contains (include "slotwright.name" .) .Release.Name }}
{{- .Release.Name | trunc 55 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "slotwright.name" .) | trunc 55 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Labels that choose the operator's pods: they never change in a release's life. */}}
{{- define "slotwright.selector" -}}
app.kubernetes.io/name: {{ include "slotwright.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{/* Labels that choose the agents' pods. */}}
{{- define "slotwright.agentSelector" -}}
app.kubernetes.io/name: {{ include "slotwright.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end }}

{{/* Labels of every object. */}}
{{- define "slotwright.labels" -}}
{{ include "slotwright.selector" . }}
app.kubernetes.io/part-of: slotwright
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The account that the operator runs as. */}}
{{- define "slotwright.account" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "slotwright.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* That account as the one subject of a binding. */}}
{{- define "slotwright.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "slotwright.account" . }}
    namespace: {{ .Release.Namespace }}
{{- end }}

{{/* The image, by digest where there is one. */}}
{{- define "slotwright.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* What the operator does with the pods of jobs, and of backfill work. */}}
{{- define "slotwright.podRules" -}}
# Jobs run as pods; patch is for the tracking finalizer and what the agent is to do.
- apiGroups: [""]
  resources: [pods]
  verbs: [create, patch, delete]
# A pod that is evicted says why: the condition DisruptionTarget.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
{{- end }}
