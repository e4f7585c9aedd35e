{{/* How a program authenticates to NATS or etcd, and whom it trusts. All three
take (list nats|etcd auth ca-secret certificate-secret). */}}
{{- define "fantasia.clientArgs" -}}
{{- $of := index . 0 -}}{{- $auth := index . 1 -}}
{{- if $auth.credsSecret }}
- --{{ $of }}-creds=/etc/fantasia/{{ $of }}-auth/nats.creds
{{- end }}
{{- if $auth.user }}
- --{{ $of }}-user={{ $auth.user }}
- --{{ $of }}-password-file=/etc/fantasia/{{ $of }}-auth/password
{{- end }}
{{- if index . 2 }}
- --{{ $of }}-ca=/etc/fantasia/{{ $of }}-ca/ca.crt
{{- end }}
{{- if index . 3 }}
- --{{ $of }}-cert=/etc/fantasia/{{ $of }}-cert/tls.crt
- --{{ $of }}-key=/etc/fantasia/{{ $of }}-cert/tls.key
{{- end }}
{{- end -}}

{{- define "fantasia.clientMounts" -}}
{{- $of := index . 0 -}}{{- $auth := index . 1 -}}
{{- if or $auth.credsSecret $auth.user }}
- {name: {{ $of }}-auth, mountPath: /etc/fantasia/{{ $of }}-auth, readOnly: true}
{{- end }}
{{- if index . 2 }}
- {name: {{ $of }}-ca, mountPath: /etc/fantasia/{{ $of }}-ca, readOnly: true}
{{- end }}
{{- if index . 3 }}
- {name: {{ $of }}-cert, mountPath: /etc/fantasia/{{ $of }}-cert, readOnly: true}
{{- end }}
{{- end -}}

{{- define "fantasia.clientVolumes" -}}
{{- $of := index . 0 -}}{{- $auth := index . 1 -}}
{{- if or $auth.credsSecret $auth.user }}
- name: {{ $of }}-auth
  secret: {secretName: {{ $auth.credsSecret | default $auth.passwordSecret }}, defaultMode: 0440}
{{- end }}
{{- with index . 2 }}
- name: {{ $of }}-ca
  secret: {secretName: {{ . }}, items: [{key: ca.crt, path: ca.crt}], defaultMode: 0440}
{{- end }}
{{- with index . 3 }}
- name: {{ $of }}-cert
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{/* The namespaces whose studies are run, as a JSON array; none means all: $. */}}
{{- define "fantasia.studyNamespaces" -}}
{{- if has "*" .Values.studies.namespaces -}}
[]
{{- else -}}
{{- .Values.studies.namespaces | default (list .Release.Namespace) | toJson -}}
{{- end -}}
{{- end -}}

{{/* "true" for a namespace that exists and is not being deleted: nothing can be created in another. Where Helm sees no cluster, as in helm template, every namespace counts: (list $ namespace). */}}
{{- define "fantasia.present" -}}
{{- $root := index . 0 -}}
{{- $found := lookup "v1" "Namespace" "" (index . 1) -}}
{{- if or (eq (index . 1) $root.Release.Namespace) (not (lookup "v1" "Namespace" "" "default")) -}}
true
{{- else if and $found (not (dig "metadata" "deletionTimestamp" "" $found)) -}}
true
{{- end -}}
{{- end -}}

{{/* "true" where the coordinators speak to Kubernetes. */}}
{{- define "fantasia.usesKubernetes" -}}
{{- $uses := ternary "true" "" (or .Values.studies.enabled (ne (include "fantasia.costPools" .) "")) -}}
{{- range $pool, $overrides := .Values.pools -}}
{{- if eq (include "fantasia.pool" (list $ $overrides) | fromYaml).autoscaling.method "leader" -}}
{{- $uses = "true" -}}
{{- end -}}
{{- end -}}
{{- $uses -}}
{{- end -}}

{{/* How the coordinators authenticate to NATS: $. */}}
{{- define "fantasia.coordinatorAuth" -}}
{{- if and (not .Values.nats.urls) .Values.nats.bundled.accounts -}}
{{- dict "user" "coordinator" "credsSecret" "" "passwordSecret" (printf "%s-nats-coordinator" (include "fantasia.fullname" .)) | toYaml -}}
{{- else -}}
{{- toYaml .Values.nats.auth.coordinator -}}
{{- end -}}
{{- end -}}

{{/* How a pool's workers authenticate to NATS: (list $ pool values). */}}
{{- define "fantasia.poolAuth" -}}
{{- $root := index . 0 -}}{{- $own := (index . 2).natsAuth -}}
{{- if and (not $root.Values.nats.urls) $root.Values.nats.bundled.accounts -}}
{{- dict "user" (printf "pool-%s" (index . 1)) "credsSecret" "" "passwordSecret" (printf "%s-nats-pool-%s" (include "fantasia.fullname" $root) (index . 1)) | toYaml -}}
{{- else if or $own.credsSecret $own.user -}}
{{- toYaml $own -}}
{{- else -}}
{{- toYaml $root.Values.nats.auth.worker -}}
{{- end -}}
{{- end -}}

{{/* The names of all pools, that of helm test too, as a JSON array: $. */}}
{{- define "fantasia.poolNames" -}}
{{- append (keys .Values.pools) "helm-test" | uniq | sortAlpha | toJson -}}
{{- end -}}
