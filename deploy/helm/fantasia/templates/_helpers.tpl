{{- define "fantasia.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "fantasia.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "fantasia.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "fantasia.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels that select a component's pods: (list $ component). */}}
{{- define "fantasia.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "fantasia.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* The labels of a component's resources: (list $ component). */}}
{{- define "fantasia.labels" -}}
{{- $root := index . 0 -}}
{{ include "fantasia.selector" . }}
app.kubernetes.io/part-of: fantasia
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* An image: (list $ name whole-reference). */}}
{{- define "fantasia.image" -}}
{{- $root := index . 0 -}}
{{- index . 2 | default (printf "%s/%s:%s" $root.Values.image.repository (index . 1) ($root.Values.image.tag | default $root.Chart.AppVersion)) -}}
{{- end -}}

{{- define "fantasia.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The security context of every pod: Kubernetes' restricted profile. */}}
{{- define "fantasia.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* The security context of every container. */}}
{{- define "fantasia.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Keeps the pods of a component on different hosts: (list $ component soft|hard). */}}
{{- define "fantasia.apart" -}}
podAntiAffinity:
  {{- if eq (index . 2) "hard" }}
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          {{- include "fantasia.selector" . | nindent 10 }}
  {{- else }}
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "fantasia.selector" . | nindent 12 }}
  {{- end }}
{{- end -}}

{{/* Addresses of NATS, separated by commas. */}}
{{- define "fantasia.natsURLs" -}}
{{- if .Values.nats.urls -}}
{{- join "," .Values.nats.urls -}}
{{- else -}}
{{ include "fantasia.scheme" (list . "tls" "nats") }}://{{ include "fantasia.fullname" . }}-nats-client.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}:4222
{{- end -}}
{{- end -}}

{{/* Addresses of etcd, separated by commas. */}}
{{- define "fantasia.etcdURLs" -}}
{{- if .Values.etcd.urls -}}
{{- join "," .Values.etcd.urls -}}
{{- else -}}
{{- $root := . -}}
{{- $hosts := list -}}
{{- if eq (int .Values.etcd.bundled.replicas) 1 -}}
{{ include "fantasia.scheme" (list . "https" "http") }}://{{ include "fantasia.fullname" . }}-etcd-client.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}:2379
{{- else -}}
{{- range $i := until (int .Values.etcd.bundled.replicas) -}}
{{- $hosts = append $hosts (printf "%s://%s-etcd-%d.%s-etcd.%s.svc.%s:2379" (include "fantasia.scheme" (list $root "https" "http")) (include "fantasia.fullname" $root) $i (include "fantasia.fullname" $root) $root.Release.Namespace $root.Values.clusterDomain) -}}
{{- end -}}
{{- join "," $hosts -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The names of the API's Service, and those of users, separated by commas: $. */}}
{{- define "fantasia.apiHosts" -}}
{{- $name := include "fantasia.fullname" . -}}
{{- $inside := printf "%s.%s" $name .Release.Namespace -}}
{{- join "," (concat (list $name $inside (printf "%s.svc" $inside) (printf "%s.svc.%s" $inside .Values.clusterDomain)) .Values.coordinator.allowedHosts) -}}
{{- end -}}

{{/* Address of the API inside the cluster. */}}
{{- define "fantasia.apiURL" -}}
{{ include "fantasia.scheme" (list . "https" "http") }}://{{ include "fantasia.apiName" . }}:{{ .Values.coordinator.service.port }}
{{- end -}}

{{/* Where telemetry goes and what it says of the pod: (list $ component). */}}
{{- define "fantasia.telemetryEnv" -}}
{{- $root := index . 0 -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- name: POD_UID
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.namespace.name=$(POD_NAMESPACE),k8s.pod.name=$(POD_NAME),k8s.pod.uid=$(POD_UID),k8s.node.name=$(NODE_NAME),k8s.container.name={{ index . 1 }},service.namespace={{ $root.Release.Name }},service.instance.id=$(POD_UID)
{{- with $root.Values.telemetry.otlpEndpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . | quote }}
- name: OTEL_EXPORTER_OTLP_PROTOCOL
  value: {{ $root.Values.telemetry.otlpProtocol | quote }}
{{- end }}
{{- range $name, $value := merge (dict) $root.Values.telemetry.env (dict "OTEL_METRICS_EXPORTER" "none" "OTEL_LOGS_EXPORTER" "none") }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* A password or token: that of the Secret, if it is in the cluster, or a new one: (list $ Secret key). */}}
{{- define "fantasia.drawn" -}}
{{- $secret := lookup "v1" "Secret" (index . 0).Release.Namespace (index . 1) | default dict -}}
{{- with get ($secret.data | default dict) (index . 2) -}}
{{- b64dec . | trim -}}
{{- else -}}
{{- randAlphaNum 40 -}}
{{- end -}}
{{- end -}}

{{/* "true" where the chart draws the tokens of the API: $. */}}
{{- define "fantasia.drawsTokens" -}}
{{- if and .Values.coordinator.requireToken (not .Values.coordinator.tokensSecret) (not .Values.coordinator.oidc.issuer) -}}
true
{{- end -}}
{{- end -}}

{{/* The Secret with the file of tokens; empty for none: $. */}}
{{- define "fantasia.tokensSecret" -}}
{{- if include "fantasia.drawsTokens" . -}}
{{ include "fantasia.fullname" . }}-token-hashes
{{- else -}}
{{- .Values.coordinator.tokensSecret -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the token of helm test; empty for none: $. */}}
{{- define "fantasia.testTokenSecret" -}}
{{- if .Values.test.tokenSecret -}}
{{- .Values.test.tokenSecret -}}
{{- else if include "fantasia.drawsTokens" . -}}
{{ include "fantasia.fullname" . }}-token-helm-test
{{- end -}}
{{- end -}}

{{/* A container of the command line, for helm test: (dict "root" $ "name" n "args" list). */}}
{{- define "fantasia.testCommand" -}}
- name: {{ .name }}
  image: {{ include "fantasia.image" (list .root "fantasia" "") }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
    - --server={{ include "fantasia.apiURL" .root }}
    {{- if .root.Values.tls.enabled }}
    - --ca=/etc/fantasia/api-ca/ca.crt
    {{- end }}
    {{- range .args }}
    - {{ . }}
    {{- end }}
  {{- with include "fantasia.testTokenSecret" .root }}
  env:
    - name: FANTASIA_TOKEN
      valueFrom: {secretKeyRef: {name: {{ . }}, key: token}}
  {{- end }}
  resources:
    requests: {cpu: 50m, memory: 64Mi}
    limits: {memory: 256Mi}
  securityContext:
    {{- include "fantasia.containerSecurity" .root | nindent 4 }}
  volumeMounts:
    - {name: study, mountPath: /study, readOnly: true}
    {{- if .root.Values.tls.enabled }}
    - {name: api-ca, mountPath: /etc/fantasia/api-ca, readOnly: true}
    {{- end }}
{{- end -}}

{{/* A number and its noun: (list number noun). */}}
{{- define "fantasia.count" -}}
{{ index . 0 }} {{ index . 1 }}{{ if ne (int (index . 0)) 1 }}s{{ end }}
{{- end -}}

{{/* What tells this release's series from those of others in one Prometheus. */}}
{{- define "fantasia.installation" -}}
{{ .Release.Namespace }}/{{ .Release.Name }}
{{- end -}}

{{/* The relabelling that gives series the label installation. */}}
{{- define "fantasia.relabel" -}}
{targetLabel: installation, replacement: {{ include "fantasia.installation" . | quote }}}
{{- end -}}

{{/* The matcher of this release's series. */}}
{{- define "fantasia.matcher" -}}
installation={{ include "fantasia.installation" . | quote }}
{{- end -}}
