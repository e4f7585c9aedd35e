{{/* Rules of NetworkPolicies. A peer list that is empty is everybody. */}}
{{- define "fantasia.peers" -}}
{{- if index . 1 }}
{{ index . 0 }}:
  {{- toYaml (index . 1) | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "fantasia.egressDNS" -}}
- ports:
    {{- range .Values.networkPolicy.dnsPorts }}
    - {protocol: UDP, port: {{ . }}}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- include "fantasia.peers" (list "to" .Values.networkPolicy.dns) | nindent 2 }}
{{- end -}}

{{/* The ports in addresses, each once: (list addresses default). */}}
{{- define "fantasia.ports" -}}
{{- $ports := list -}}
{{- range index . 0 -}}
{{- $ports = append $ports (regexFind ":[0-9]+$" . | trimPrefix ":" | default (index $ 1 | toString)) -}}
{{- end -}}
{{- range $ports | uniq }}
- {protocol: TCP, port: {{ . }}}
{{- end -}}
{{- end -}}

{{- define "fantasia.egressNATS" -}}
{{- if .Values.nats.urls }}
- ports:
    {{- include "fantasia.ports" (list .Values.nats.urls 4222) | nindent 4 }}
  {{- include "fantasia.peers" (list "to" .Values.networkPolicy.natsTo) | nindent 2 }}
{{- else }}
- ports:
    - {protocol: TCP, port: 4222}
  to:
    - podSelector:
        matchLabels:
          {{- include "fantasia.selector" (list . "nats") | nindent 10 }}
{{- end }}
{{- end -}}

{{- define "fantasia.egressEtcd" -}}
{{- if .Values.etcd.urls }}
- ports:
    {{- include "fantasia.ports" (list .Values.etcd.urls 2379) | nindent 4 }}
  {{- include "fantasia.peers" (list "to" .Values.networkPolicy.etcdTo) | nindent 2 }}
{{- else }}
- ports:
    - {protocol: TCP, port: 2379}
  to:
    - podSelector:
        matchLabels:
          {{- include "fantasia.selector" (list . "etcd") | nindent 10 }}
{{- end }}
{{- end -}}

{{- define "fantasia.egressOTLP" -}}
{{- if .Values.telemetry.otlpEndpoint }}
- ports:
    - {protocol: TCP, port: {{ .Values.networkPolicy.otlpPort }}}
  {{- include "fantasia.peers" (list "to" .Values.networkPolicy.otlpTo) | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "fantasia.egressOIDC" -}}
{{- if .Values.coordinator.oidc.issuer }}
- ports:
    {{- range .Values.networkPolicy.oidcPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- include "fantasia.peers" (list "to" .Values.networkPolicy.oidcTo) | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "fantasia.egressKubernetes" -}}
- ports:
    {{- range .Values.networkPolicy.kubernetesPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- include "fantasia.peers" (list "to" .Values.networkPolicy.kubernetesTo) | nindent 2 }}
{{- end -}}

{{/* Lets pods of components in: (list $ port component…). */}}
{{- define "fantasia.ingressFrom" -}}
{{- $root := index . 0 -}}
- ports:
    - {protocol: TCP, port: {{ index . 1 }}}
  from:
    {{- range slice . 2 }}
    - podSelector:
        matchLabels:
          {{- include "fantasia.selector" (list $root .) | nindent 10 }}
    {{- end }}
{{- end -}}

{{/* Lets those in that read metrics: (list $ port). */}}
{{- define "fantasia.ingressMetrics" -}}
{{- with (index . 0).Values.networkPolicy.metricsFrom }}
- ports:
    - {protocol: TCP, port: {{ index $ 1 }}}
  from:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{/* The head of a component's policy: (list $ component). */}}
{{- define "fantasia.policy" -}}
{{- $root := index . 0 -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "fantasia.fullname" $root }}-{{ index . 1 }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "fantasia.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "fantasia.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
{{- end -}}
