{{/* TLS of the API and of what is bundled. One certificate each, so that whoever has the key of
one of them cannot pass for another. */}}

{{/* The Secret of a certificate; empty without TLS: (list $ api|nats|etcd). */}}
{{- define "fantasia.tlsSecret" -}}
{{- if (index . 0).Values.tls.enabled -}}
{{ include "fantasia.fullname" (index . 0) }}-{{ index . 1 }}-tls
{{- end -}}
{{- end -}}

{{/* The Secret with the authority of NATS' certificate; empty for the system's: $. */}}
{{- define "fantasia.natsCA" -}}
{{- ternary (include "fantasia.tlsSecret" (list . "nats")) .Values.nats.tls.caSecret (and .Values.tls.enabled (not .Values.nats.urls)) -}}
{{- end -}}

{{/* The same for etcd: $. */}}
{{- define "fantasia.etcdCA" -}}
{{- ternary (include "fantasia.tlsSecret" (list . "etcd")) .Values.etcd.tls.caSecret (and .Values.tls.enabled (not .Values.etcd.urls)) -}}
{{- end -}}

{{/* The Secret with the coordinators' certificate for etcd; empty for none: $. */}}
{{- define "fantasia.etcdCert" -}}
{{- ternary (include "fantasia.tlsSecret" (list . "api")) .Values.etcd.tls.certSecret (and .Values.tls.enabled (not .Values.etcd.urls)) -}}
{{- end -}}

{{/* The volume of a certificate: (list name Secret). */}}
{{- define "fantasia.tlsVolume" -}}
- name: {{ index . 0 }}
  secret: {secretName: {{ index . 1 }}, defaultMode: 0440}
{{- end -}}

{{/* The scheme of an address: (list $ with without). */}}
{{- define "fantasia.scheme" -}}
{{- ternary (index . 1) (index . 2) (index . 0).Values.tls.enabled -}}
{{- end -}}

{{/* The name that the certificate of every replica has: $. */}}
{{- define "fantasia.apiName" -}}
{{ include "fantasia.fullname" . }}.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{/* The names in a certificate, as a JSON array: (list $ api|nats|etcd). */}}
{{- define "fantasia.tlsNames" -}}
{{- $root := index . 0 -}}
{{- $full := include "fantasia.fullname" $root -}}
{{- $inside := printf "%s.svc.%s" $root.Release.Namespace $root.Values.clusterDomain -}}
{{- $names := list -}}
{{- if eq (index . 1) "api" -}}
{{- range splitList "," (include "fantasia.apiHosts" $root) -}}
{{- if ne . "*" -}}
{{- $names = append $names (ternary (printf "*%s" .) . (hasPrefix "." .)) -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- $server := printf "%s-%s" $full (index . 1) -}}
{{- range $service := list $server (printf "%s-client" $server) -}}
{{- $names = concat $names (list $service (printf "%s.%s" $service $root.Release.Namespace) (printf "%s.%s.svc" $service $root.Release.Namespace) (printf "%s.%s" $service $inside)) -}}
{{- end -}}
{{- range $i := until (int (index $root.Values (index . 1)).bundled.replicas) -}}
{{- $names = append $names (printf "%s-%d.%s.%s" $server $i $server $inside) -}}
{{- end -}}
{{- end -}}
{{- append $names "localhost" | toJson -}}
{{- end -}}
