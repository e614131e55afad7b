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
app.kubernetes.io/name: {{ include "slotwright.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end }}

{{/* Labels that choose the agents' pods. */}}
{{- define "slotwright.agentSelector" -}}
app.kubernetes.io/name: {{ include "slotwright.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: agent
{{- end }}

{{/* Labels of every object of the operator. */}}
{{- define "slotwright.labels" -}}
{{ include "slotwright.selector" . }}
{{ include "slotwright.commonLabels" . }}
{{- end }}

{{/* Labels of every object of the agents. */}}
{{- define "slotwright.agentLabels" -}}
{{ include "slotwright.agentSelector" . }}
{{ include "slotwright.commonLabels" . }}
{{- end }}

{{/* Labels that say nothing of the component. */}}
{{- define "slotwright.commonLabels" -}}
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
    name: {{ include "slotwright.account" . | quote }}
    namespace: {{ .Release.Namespace | quote }}
{{- end }}

{{/* The Secret that the operator writes: the key of seals and, unless cert-manager makes it, the webhook's certificate. */}}
{{- define "slotwright.webhookSecret" -}}
{{ include "slotwright.fullname" . }}-webhook-{{ if .Values.webhook.certManager.enabled }}seal{{ else }}cert{{ end }}
{{- end }}

{{/* Whether the operator serves cert-manager's certificate. */}}
{{- define "slotwright.certManager" -}}
{{- if and .Values.webhook.enabled .Values.webhook.certManager.enabled }}yes{{ end }}
{{- end }}

{{/* Whether the history is on a volume that only one pod may mount. */}}
{{- define "slotwright.historyIsAlone" -}}
{{- with .Values.history }}
{{- if and .enabled .persistence.enabled (ne .persistence.accessMode "ReadWriteMany") }}yes{{ end }}
{{- end }}
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

{{/* Whether a write adds, changes or removes a slotwright.dev/ key of a pod's labels or annotations, in CEL. To compare the whole maps
     costs the API server a small part of what it costs to look at each key, and for most writes that comparison is enough. */}}
{{- define "slotwright.changesMarks" -}}
{{- $now := printf "(has(object.metadata.%s) ? object.metadata.%s : {})" . . }}
{{- $before := printf "(oldObject != null && has(oldObject.metadata.%s) ? oldObject.metadata.%s : {})" . . -}}
({{ $now }} != {{ $before }} &&
({{ $now }}.exists(key, key.startsWith('slotwright.dev/') &&
!(key in {{ $before }} && {{ $before }}[key] == {{ $now }}[key])) ||
{{ $before }}.exists(key, key.startsWith('slotwright.dev/') && !(key in {{ $now }}))))
{{- end }}

{{/* Whether a write changes a pod's slotwright.dev/ finalizers, in CEL. */}}
{{- define "slotwright.changesFinalizers" -}}
{{- $now := "(has(object.metadata.finalizers) ? object.metadata.finalizers : [])" }}
{{- $before := "(oldObject != null && has(oldObject.metadata.finalizers) ? oldObject.metadata.finalizers : [])" -}}
({{ $now }} != {{ $before }} &&
{{ $now }}.filter(name, name.startsWith('slotwright.dev/')) !=
{{ $before }}.filter(name, name.startsWith('slotwright.dev/')))
{{- end }}

{{/* Whether a write resizes a pod under a claim, in CEL. */}}
{{- define "slotwright.resizesClaimed" -}}
(has(request.subResource) && request.subResource == 'resize' && has(oldObject.metadata.annotations) &&
'slotwright.dev/claim' in oldObject.metadata.annotations)
{{- end }}

{{/* Whether the policy that keeps pods lean is made: asked for, or the API server has the kind. Helm does not know what an API server has
     when it renders without a cluster. */}}
{{- define "slotwright.leanPods" -}}
{{- $wanted := toString .Values.admissionPolicy.leanPods }}
{{- $there := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}
{{- if or (eq $wanted "true") (and (eq $wanted "auto") $there) }}yes{{ end }}
{{- end }}

{{/* Whether the policies that stamp who creates a job are made: asked for, and MutatingAdmissionPolicy v1 is there. */}}
{{- define "slotwright.stamps" -}}
{{- if and .Values.admissionPolicy.owner (semverCompare ">=1.36-0" .Capabilities.KubeVersion.Version) }}yes{{ end }}
{{- end }}

{{/* The name of these policies and of their bindings. The operator believes no stamp of a policy whose spec was edited, so that another
     text has another name: an upgrade makes new policies, and removes the old ones. */}}
{{- define "slotwright.stampsName" -}}
{{- $text := print (include "slotwright.stampPolicy" .) (include "slotwright.stampGuard" .) }}
{{- printf "%s-owner-%s" (include "slotwright.fullname" .) (sha256sum $text | trunc 8) }}
{{- end }}

{{/* What a stamp says, in CEL: the user's name in the first line, and a group in each further line. A name with a line break counts
     as no name, so that nobody forges a line. */}}
{{- define "slotwright.stampVariables" -}}
- name: user
  expression: >-
    has(request.userInfo.username) && !request.userInfo.username.contains('\n') ? request.userInfo.username : ''
- name: groups
  expression: "has(request.userInfo.groups) ? request.userInfo.groups : []"
- name: creator
  expression: "([variables.user] + variables.groups.filter(group, !group.contains('\\n'))).join('\\n')"
- name: before
  expression: >-
    oldObject != null && has(oldObject.metadata.annotations) && 'slotwright.dev/created-by' in oldObject.metadata.annotations ?
    oldObject.metadata.annotations['slotwright.dev/created-by'] : ''
- name: written
  expression: >-
    has(object.metadata.annotations) && 'slotwright.dev/created-by' in object.metadata.annotations ?
    object.metadata.annotations['slotwright.dev/created-by'] : ''
{{- end }}

{{/* The requests that stamps are about. */}}
{{- define "slotwright.stampRequests" -}}
resourceRules:
  - apiGroups: [slotwright.dev]
    apiVersions: [v1alpha1]
    operations: [CREATE, UPDATE]
    resources: [htcjobs]
    scope: Namespaced
{{- end }}

{{/* The spec of the policy that stamps: a new job gets a stamp, and an edited job keeps its own. */}}
{{- define "slotwright.stampPolicy" -}}
failurePolicy: Fail
reinvocationPolicy: Never
matchConstraints:
  {{- include "slotwright.stampRequests" . | nindent 2 }}
variables:
  {{- include "slotwright.stampVariables" . | nindent 2 }}
  - name: wanted
    expression: "request.operation == 'CREATE' ? variables.creator : variables.before"
mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        variables.written == variables.wanted ? [] :
        variables.wanted == '' ?
        [JSONPatch{op: 'remove', path: '/metadata/annotations/' + jsonpatch.escapeKey('slotwright.dev/created-by')}] :
        (has(object.metadata.annotations) ? [] : [JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}]) +
        [JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('slotwright.dev/created-by'),
        value: variables.wanted}]
{{- end }}

{{/* The spec of the policy that lets no other stamp pass, and nobody edit or act on what another created. */}}
{{- define "slotwright.stampGuard" -}}
failurePolicy: Fail
matchConstraints:
  {{- include "slotwright.stampRequests" . | nindent 2 }}
variables:
  {{- include "slotwright.stampVariables" . | nindent 2 }}
  - name: mayEdit
    expression: >-
      variables.before == '' || variables.before.split('\n')[0] == request.userInfo.username || 'system:masters' in variables.groups ||
      authorizer.group('slotwright.dev').resource('htcjobs').namespace(request.namespace).check('administer').allowed()
  - name: actsBefore
    expression: >-
      oldObject != null && has(oldObject.metadata.annotations) && 'slotwright.dev/acts' in oldObject.metadata.annotations ?
      oldObject.metadata.annotations['slotwright.dev/acts'] : ''
  - name: acts
    expression: >-
      has(object.metadata.annotations) && 'slotwright.dev/acts' in object.metadata.annotations ?
      object.metadata.annotations['slotwright.dev/acts'] : ''
validations:
  - expression: "request.operation != 'CREATE' || variables.written == variables.creator"
    message: >-
      slotwright.dev/created-by has to say who creates the job. The API server writes it by a MutatingAdmissionPolicy, which is not in
      force: try again, or ask an admin
    reason: Forbidden
  - expression: "request.operation != 'UPDATE' || variables.written == variables.before"
    message: slotwright.dev/created-by says who created the job, and is never changed
    reason: Forbidden
  - expression: >-
      request.operation != 'UPDATE' || variables.mayEdit ||
      (object.spec == oldObject.spec && variables.acts == variables.actsBefore)
    messageExpression: >-
      "the job is " + variables.before.split('\n')[0] + "'s, and " + variables.user + " may not edit its spec; ask " +
      variables.before.split('\n')[0] + ", or submit a job of your own"
    message: the job is another's, and you may not edit its spec; submit a job of your own
    reason: Forbidden
{{- end }}

{{/* Fails if two listeners of an operator's pod have one port: the operator could not start. */}}
{{- define "slotwright.checkPorts" -}}
{{- $ports := dict (toString .Values.healthPort) "healthPort" -}}
{{- $others := dict "metrics.port" .Values.metrics.port -}}
{{- if .Values.webhook.enabled }}{{- $_ := set $others "webhook.port" .Values.webhook.port }}{{- end -}}
{{- if .Values.history.enabled }}{{- $_ := set $others "history.port" .Values.history.port }}{{- end -}}
{{- range $name := keys $others | sortAlpha -}}
{{- $port := toString (get $others $name) -}}
{{- if hasKey $ports $port }}{{- fail (printf "%s and %s are both %s: give each a port of its own" (get $ports $port) $name $port) }}{{- end -}}
{{- $_ := set $ports $port $name -}}
{{- end -}}
{{- end }}
