{{/* A pool's values over the defaults, as YAML, with stateful and jobs (its trials are Jobs): (list $ overrides). */}}
{{- define "fantasia.pool" -}}
{{- $root := index . 0 -}}
{{- $p := mergeOverwrite (deepCopy $root.Values.poolDefaults) (deepCopy (index . 1 | default dict)) -}}
{{- $jobs := or (ne $p.kubejob.template "") $p.kubejob.allowStudyJobs -}}
{{- if $jobs -}}
{{- $p = mergeOverwrite $p (dict "image" "" "workerPath" "" "serviceAccountToken" true) -}}
{{- end -}}
{{- if not $p.state.type -}}
{{- $nats := and (not $root.Values.nats.urls) $root.Values.nats.bundled.persistence.enabled -}}
{{- $etcd := and (not $root.Values.etcd.urls) $root.Values.etcd.bundled.persistence.enabled -}}
{{- if and $jobs (or $nats $etcd) -}}
{{- $class := or $p.state.storageClassName (ternary $root.Values.nats.bundled.persistence.storageClassName $root.Values.etcd.bundled.persistence.storageClassName $nats) -}}
{{- $_ := set $p "state" (merge (dict "type" "persistentVolumeClaim" "storageClassName" $class) $p.state) -}}
{{- else -}}
{{- $_ := set $p.state "type" "emptyDir" -}}
{{- end -}}
{{- end -}}
{{- $_ := set $p "stateful" (or (eq $p.state.type "persistentVolumeClaim") $jobs) -}}
{{- $_ := set $p "jobs" $jobs -}}
{{- toYaml $p -}}
{{- end -}}

{{/* The labels that select a pool's pods: (list $ pool). */}}
{{- define "fantasia.poolSelector" -}}
{{ include "fantasia.selector" (list (index . 0) "worker") }}
fantasia.dev/pool: {{ index . 1 | quote }}
{{- end -}}

{{/* The labels of a pool's resources: (list $ pool). */}}
{{- define "fantasia.poolLabels" -}}
{{ include "fantasia.labels" (list (index . 0) "worker") }}
fantasia.dev/pool: {{ index . 1 | quote }}
{{- end -}}

{{/* Copies the worker into a volume, for images that lack it: $. */}}
{{- define "fantasia.installWorker" -}}
- name: install-worker
  image: {{ include "fantasia.image" (list . "worker" "") }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [install, /fantasia]
  resources:
    requests: {cpu: 50m, memory: 32Mi}
    limits: {memory: 128Mi}
  securityContext:
    {{- include "fantasia.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - {name: fantasia, mountPath: /fantasia}
{{- end -}}

{{/* Where pods that can be taken away at any time run. */}}
{{- define "fantasia.preemptibleTolerations" -}}
- {key: cloud.google.com/gke-spot, operator: Equal, value: "true", effect: NoSchedule}
- {key: kubernetes.azure.com/scalesetpriority, operator: Equal, value: spot, effect: NoSchedule}
- {key: fantasia.dev/preemptible, operator: Exists}
{{- end -}}

{{- define "fantasia.preemptibleAffinity" -}}
nodeAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      preference: {matchExpressions: [{key: cloud.google.com/gke-spot, operator: In, values: ["true"]}]}
    - weight: 100
      preference: {matchExpressions: [{key: kubernetes.azure.com/scalesetpriority, operator: In, values: [spot]}]}
    - weight: 100
      preference: {matchExpressions: [{key: eks.amazonaws.com/capacityType, operator: In, values: [SPOT]}]}
    - weight: 100
      preference: {matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}
{{- end -}}

{{/* The pod of a pool: (dict "root" $ "name" pool "pool" values "account" service account). */}}
{{- define "fantasia.poolPod" -}}
{{- $root := .root -}}
{{- $p := .pool -}}
{{- $auth := include "fantasia.poolAuth" (list $root .name $p) | fromYaml -}}
{{- $client := list "nats" $auth (include "fantasia.natsCA" $root) $root.Values.nats.tls.workerSecret -}}
metadata:
  labels:
    {{- include "fantasia.poolLabels" (list $root .name) | nindent 4 }}
    fantasia.dev/preemptible: {{ $p.preemptible | quote }}
    {{- with $p.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    cluster-autoscaler.kubernetes.io/safe-to-evict: {{ $p.preemptible | quote }}
    {{- with $p.kubejob.template }}
    checksum/template: {{ sha256sum . }}
    {{- end }}
    {{- if $p.kubejob.allowStudyJobs }}
    checksum/study-jobs: {{ include "fantasia.studyJobs" $root | sha256sum }}
    {{- end }}
    {{- with merge (dict) $p.podAnnotations $root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ .account }}
  automountServiceAccountToken: {{ $p.serviceAccountToken }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add $p.drainSeconds 20 }}
  {{- include "fantasia.pullSecrets" $root | nindent 2 }}
  {{- with $p.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $p.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- mergeOverwrite (include "fantasia.podSecurity" $root | fromYaml) $p.podSecurityContext | toYaml | nindent 4 }}
  {{- if $p.affinity }}
  affinity:
    {{- toYaml $p.affinity | nindent 4 }}
  {{- else if $p.preemptible }}
  affinity:
    {{- include "fantasia.preemptibleAffinity" $root | nindent 4 }}
  {{- end }}
  {{- with $p.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    - labelSelector:
        matchLabels:
          {{- include "fantasia.poolSelector" (list $root $.name) | nindent 10 }}
      {{- toYaml . | nindent 6 }}
    {{- end }}
  {{- end }}
  {{- with $p.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if or $p.tolerations $p.preemptible }}
  tolerations:
    {{- with $p.tolerations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if $p.preemptible }}
    {{- include "fantasia.preemptibleTolerations" $root | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- if and $p.image (not $p.workerPath) }}
  initContainers:
    {{- include "fantasia.installWorker" $root | nindent 4 }}
  {{- end }}
  containers:
    - name: worker
      image: {{ include "fantasia.image" (list $root (ternary "kubeworker" "worker" $p.jobs) $p.image) }}
      imagePullPolicy: {{ $p.imagePullPolicy | default $root.Values.image.pullPolicy }}
      {{- if $p.workerPath }}
      command: [{{ $p.workerPath | quote }}]
      {{- else if $p.image }}
      command: [/fantasia/worker]
      {{- end }}
      args:
        {{- if $p.jobs }}
        {{- include "fantasia.kubejobArgs" . | nindent 8 }}
        {{- end }}
        - --name=$(POD_NAME)
        - --pool={{ .name }}
        - --nats={{ include "fantasia.natsURLs" $root }}
        {{- include "fantasia.clientArgs" $client | nindent 8 }}
        - --slots={{ $p.slots }}
        {{- if not $p.jobs }}
        - --gpus={{ ternary "auto" "none" (gt (int $p.gpus) 0) }}
        {{- end }}
        - --keep-trials={{ $p.state.keepTrials }}
        - --state=/var/lib/fantasia
        - --listen=:8081
        - --drain={{ $p.drainSeconds }}s
        - --heartbeat={{ $p.heartbeat }}
        {{- if $p.checkpoints.existingClaim }}
        - --checkpoints=/var/lib/fantasia-checkpoints
        {{- end }}
        {{- if and $p.allowStudyCommands (not $p.jobs) }}
        - --allow-study-commands
        {{- end }}
        {{- with include "fantasia.passEnv" $p }}
        - --pass-env={{ . }}
        {{- end }}
        {{- if $p.verbose }}
        - --verbose
        {{- end }}
        {{- range $p.extraArgs }}
        - {{ . | quote }}
        {{- end }}
        {{- if and $p.command (not $p.jobs) }}
        - --
        {{- range $p.command }}
        - {{ . | quote }}
        {{- end }}
        {{- end }}
      env:
        {{- include "fantasia.telemetryEnv" (list $root "worker") | nindent 8 }}
        - name: HOME
          value: /tmp
        {{- with $p.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $p.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: probes, containerPort: 8081}
      startupProbe:
        httpGet: {path: /healthz, port: probes}
        periodSeconds: 1
        failureThreshold: 120
      livenessProbe:
        httpGet: {path: /healthz, port: probes}
        periodSeconds: 20
        timeoutSeconds: 10
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: probes}
        periodSeconds: 5
        timeoutSeconds: 5
      resources:
        {{- $resources := deepCopy $p.resources }}
        {{- if gt (int $p.gpus) 0 }}
        {{- $resources = mergeOverwrite $resources (dict "limits" (dict $p.gpuResource (int $p.gpus))) }}
        {{- end }}
        {{- toYaml $resources | nindent 8 }}
      securityContext:
        {{- mergeOverwrite (include "fantasia.containerSecurity" $root | fromYaml) $p.securityContext | toYaml | nindent 8 }}
      volumeMounts:
        - {name: state, mountPath: /var/lib/fantasia}
        - {name: tmp, mountPath: /tmp}
        {{- if $p.kubejob.template }}
        - {name: template, mountPath: /etc/fantasia/template, readOnly: true}
        {{- end }}
        {{- if $p.kubejob.allowStudyJobs }}
        - {name: studies, mountPath: /etc/fantasia/studies, readOnly: true}
        {{- end }}
        {{- if and $p.image (not $p.workerPath) }}
        - {name: fantasia, mountPath: /fantasia, readOnly: true}
        {{- end }}
        {{- if $p.checkpoints.existingClaim }}
        - {name: checkpoints, mountPath: /var/lib/fantasia-checkpoints}
        {{- end }}
        {{- include "fantasia.clientMounts" $client | nindent 8 }}
        {{- with $p.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- if eq $p.state.type "emptyDir" }}
    - name: state
      emptyDir: {sizeLimit: {{ $p.state.size }}}
    {{- end }}
    - name: tmp
      emptyDir: {}
    {{- if $p.kubejob.template }}
    - name: template
      configMap: {name: {{ include "fantasia.fullname" $root }}-worker-{{ .name }}}
    {{- end }}
    {{- if $p.kubejob.allowStudyJobs }}
    - name: studies
      configMap: {name: {{ include "fantasia.fullname" $root }}-studies, items: [{key: jobs.yaml, path: jobs.yaml}]}
    {{- end }}
    {{- if and $p.image (not $p.workerPath) }}
    - name: fantasia
      emptyDir: {sizeLimit: 256Mi}
    {{- end }}
    {{- with $p.checkpoints.existingClaim }}
    - name: checkpoints
      persistentVolumeClaim: {claimName: {{ . }}}
    {{- end }}
    {{- include "fantasia.clientVolumes" $client | nindent 4 }}
    {{- with $p.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* The variables that a pool's programs get, separated by commas: its own, and those of passEnv. */}}
{{- define "fantasia.passEnv" -}}
{{- $names := list -}}
{{- if not .jobs -}}
{{- range .env -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- $names = concat $names .passEnv -}}
{{- end -}}
{{- join "," ($names | uniq) -}}
{{- end -}}

{{/* PromQL for the slots of a pool that running studies could use: (list $ pool values). */}}
{{- define "fantasia.usefulQuery" -}}
{{- $root := index . 0 -}}
{{- with (index . 2).autoscaling.query -}}
{{ . }}
{{- else -}}
{{- $matchers := $root.Values.autoscaling.prometheus.matchers -}}
{{- if and (not $matchers) $root.Values.metrics.serviceMonitor.enabled -}}
{{- $matchers = include "fantasia.matcher" $root -}}
{{- end -}}
max(fantasia_pool_useful_parallelism{fantasia_pool="{{ index . 1 }}"{{ with $matchers }},{{ . }}{{ end }}}) or 0 * max(fantasia_leader_leading{{ with $matchers }}{ {{- . -}} }{{ end }} == 1)
{{- end -}}
{{- end -}}

{{/* The pools whose pods' deletion costs the leader keeps current, separated by commas: $. */}}
{{- define "fantasia.costPools" -}}
{{- $pools := list -}}
{{- range $pool, $overrides := .Values.pools -}}
{{- if (include "fantasia.pool" (list $ $overrides) | fromYaml).podDeletionCost -}}
{{- $pools = append $pools $pool -}}
{{- end -}}
{{- end -}}
{{- join "," $pools -}}
{{- end -}}

{{/* The pools that the leader scales, as --scale reads them; nothing without any: $. */}}
{{- define "fantasia.scale" -}}
{{- range $pool, $overrides := .Values.pools }}
{{- $p := include "fantasia.pool" (list $ $overrides) | fromYaml }}
{{- if eq $p.autoscaling.method "leader" }}
{{ $pool }}:
  namespace: {{ $.Release.Namespace }}
  kind: {{ ternary "StatefulSet" "Deployment" $p.stateful }}
  name: {{ include "fantasia.fullname" $ }}-worker-{{ $pool }}
  min: {{ $p.autoscaling.minReplicas }}
  max: {{ $p.autoscaling.maxReplicas }}
  slots: {{ $p.slots }}
  downAfter: {{ $p.autoscaling.stabilizationSeconds }}s
{{- end }}
{{- end }}
{{- end -}}

{{/* The first arguments of a pool whose trials are Jobs: as fantasia.poolPod. */}}
{{- define "fantasia.kubejobArgs" -}}
{{- $k := .pool.kubejob -}}
- --ttl={{ $k.ttl }}
- --start-timeout={{ $k.startTimeout }}
- --queue-timeout={{ $k.queueTimeout }}
{{- if $k.template }}
- --template=/etc/fantasia/template/template.yaml
- --owner=statefulsets.v1.apps/{{ include "fantasia.fullname" .root }}-worker-{{ .name }}
{{- end }}
{{- if $k.allowStudyJobs }}
- --study-jobs=/etc/fantasia/studies/jobs.yaml
{{- end }}
{{- if $k.keep }}
- --keep
{{- end }}
{{- if $k.failMemoryKills }}
- --fail-memory-kills
{{- end }}
{{- with $k.container }}
- --container={{ . }}
{{- end }}
{{- with $k.reporter }}
- --reporter={{ . }}
{{- end }}
{{- with $k.success }}
- {{ printf "--success=%s" . | quote }}
{{- end }}
{{- with $k.failure }}
- {{ printf "--failure=%s" . | quote }}
{{- end }}
{{- if $k.sidecar }}
- --sidecar={{ include "fantasia.image" (list .root "worker" "") }}
- --sidecar-pull-policy={{ .root.Values.image.pullPolicy }}
{{- end }}
{{- end -}}

{{/* The policies of the namespaces whose studies may bring Jobs, each with the kinds that all may bring: the root. */}}
{{- define "fantasia.studyJobs" -}}
{{- $policies := dict -}}
{{- range $namespace, $policy := .Values.studies.jobs -}}
{{- $_ := set $policies $namespace (merge (dict "kinds" $.Values.studies.kinds) $policy) -}}
{{- end -}}
{{- toYaml $policies -}}
{{- end -}}

{{/* Fails if a condition in CEL is broken, as far as a template can see: a list of the value's path and the condition. */}}
{{- define "fantasia.checkCondition" -}}
{{- $bare := regexReplaceAll "\"([^\"\\\\]|\\\\.)*\"|'([^'\\\\]|\\\\.)*'" (index . 1) "text" -}}
{{- $why := "" -}}
{{- range list "()" "[]" "{}" -}}
{{- $open := sub (len (splitList (substr 0 1 .) $bare)) 1 -}}
{{- $close := sub (len (splitList (substr 1 2 .) $bare)) 1 -}}
{{- if ne $open $close -}}
{{- $why = printf "want as many %s as %s, got %d and %d" (substr 0 1 .) (substr 1 2 .) $open $close -}}
{{- end -}}
{{- end -}}
{{- if regexMatch "[\"']" $bare -}}
{{- $why = "want each text closed by the quote that opens it" -}}
{{- else if regexMatch "(^|[^=!<>])=([^=]|$)" $bare -}}
{{- $why = "want == in place of =" -}}
{{- else if regexMatch "(^|[^&])&([^&]|$)|(^|[^|])[|]([^|]|$)|[[:alnum:])]\\s+(and|or)\\s" $bare -}}
{{- $why = "want && or || between conditions" -}}
{{- else if regexMatch "^\\s*(&&|[|][|]|[=!<>]=|[<>*/%.,)])|(&&|[|][|]|[=!<>]=|[-<>+*/%.,(!])\\s*$" $bare -}}
{{- $why = "want a whole condition, got its beginning or its end" -}}
{{- end -}}
{{- if $why -}}
{{- fail (printf "%s: %q is no condition in CEL, such as status.phase == \"Succeeded\": %s" (index . 0) (index . 1) $why) -}}
{{- end -}}
{{- end -}}
