{{/* The members of the bundled etcd, as --initial-cluster wants them. */}}
{{- define "fantasia.etcdCluster" -}}
{{- $name := printf "%s-etcd" (include "fantasia.fullname" .) -}}
{{- $members := list -}}
{{- range $i := until (int .Values.etcd.bundled.replicas) -}}
{{- $members = append $members (printf "%s-%d=%s://%s-%d.%s.%s.svc.%s:2380" $name $i (include "fantasia.scheme" (list $ "https" "http")) $name $i $name $.Release.Namespace $.Values.clusterDomain) -}}
{{- end -}}
{{- join "," $members -}}
{{- end -}}
