{{/* The configuration of the bundled NATS. */}}
{{- define "fantasia.natsConfig" -}}
{{- $name := printf "%s-nats" (include "fantasia.fullname" .) -}}
{{- $n := .Values.nats.bundled -}}
server_name: $POD_NAME
listen: 0.0.0.0:4222
http: 0.0.0.0:8222
max_payload: {{ int64 $n.maxPayload }}
pid_file: /tmp/nats.pid
jetstream {
  store_dir: /var/lib/nats
  max_file_store: {{ $n.persistence.size }}
  {{- if $n.syncAlways }}
  sync_interval: always
  {{- end }}
}
{{- if .Values.tls.enabled }}
tls {
  cert_file: /etc/nats-tls/tls.crt
  key_file: /etc/nats-tls/tls.key
}
{{- end }}
{{- if gt (int $n.replicas) 1 }}
cluster {
  name: {{ $name }}
  listen: 0.0.0.0:6222
  {{- if .Values.tls.enabled }}
  tls {
    cert_file: /etc/nats-tls/tls.crt
    key_file: /etc/nats-tls/tls.key
    ca_file: /etc/nats-tls/ca.crt
  }
  {{- end }}
  routes: [
    {{- range $i := until (int $n.replicas) }}
    nats://{{ $name }}-{{ $i }}.{{ $name }}.{{ $.Release.Namespace }}.svc.{{ $.Values.clusterDomain }}:6222
    {{- end }}
  ]
}
{{- end }}
{{- if $n.accounts }}
include ../nats-accounts/accounts.conf
{{- end }}
{{- end -}}

{{/* The volume "data" of a StatefulSet, where no claim template makes it: a persistence block. */}}
{{- define "fantasia.dataVolume" -}}
{{- if not .enabled }}
- name: data
  emptyDir: {sizeLimit: {{ .size }}}
{{- else if .existingClaim }}
- name: data
  persistentVolumeClaim: {claimName: {{ .existingClaim }}}
{{- end }}
{{- end -}}

{{/* The claim template "data" of a StatefulSet: (list $ component persistence). */}}
{{- define "fantasia.dataClaim" -}}
{{- $p := index . 2 -}}
{{- if and $p.enabled (not $p.existingClaim) }}
volumeClaimTemplates:
  - apiVersion: v1
    kind: PersistentVolumeClaim
    metadata:
      name: data
      labels:
        {{- include "fantasia.selector" (list (index . 0) (index . 1)) | nindent 8 }}
    spec:
      accessModes: [ReadWriteOnce]
      {{- with $p.storageClassName }}
      storageClassName: {{ . }}
      {{- end }}
      resources: {requests: {storage: {{ $p.size }}}}
{{- end }}
{{- end -}}
