{{/*
The accounts of the bundled NATS, word for word as `coordinator nats-config --accounts-only`
prints them, but for the passwords: (dict "pools" names "identity" map from user to identity).
Why they are as they are is said in messaging/natsbus/accounts.go.
*/}}
{{- define "fantasia.natsAccounts" -}}
{{- $identity := .identity -}}
accounts {
  COORDINATORS {
    jetstream enabled
    users [
      { user: "coordinator", password: {{ get $identity "coordinator" }} }
    ]
    exports [
      { service: ">", response_type: stream, response_threshold: "30s", accounts: [WORKERS] }
      { stream: "fantasia.control.0.*.*", accounts: [WORKERS] }
    ]
  }
  WORKERS {
    users [
{{- range .pools }}
      { user: "pool-{{ . }}", password: {{ get $identity (printf "pool-%s" .) }}, permissions {
        publish [
          "$JS.API.CONSUMER.MSG.NEXT.FANTASIA_ASSIGN.pool_0_{{ . }}"
          "$JS.ACK.FANTASIA_ASSIGN.pool_0_{{ . }}.*.*.*.*.*", "fantasia.claim.0.{{ . }}.*.*.*"
          "fantasia.result.0.{{ . }}.*.*.*.*", "fantasia.metric.0.*.*.*"
          "fantasia.heartbeat.0.{{ . }}.*", "fantasia.dlq.0.{{ . }}.*"
          "fantasia.log.0.{{ . }}.*"
        ]
        subscribe ["_INBOX.{{ . }}.*.>", "fantasia.control.0.{{ . }}.*"]
      } }
{{- end }}
    ]
    imports [
{{- range .pools }}
      { service: { account: COORDINATORS, subject: "$JS.API.CONSUMER.MSG.NEXT.FANTASIA_ASSIGN.pool_0_{{ . }}" } }
      { service: { account: COORDINATORS, subject: "$JS.ACK.FANTASIA_ASSIGN.pool_0_{{ . }}.*.*.*.*.*" } }
      { service: { account: COORDINATORS, subject: "fantasia.claim.0.{{ . }}.*.*.*" } }
      { service: { account: COORDINATORS, subject: "fantasia.result.0.{{ . }}.*.*.*.*" } }
      { service: { account: COORDINATORS, subject: "fantasia.heartbeat.0.{{ . }}.*" } }
      { service: { account: COORDINATORS, subject: "fantasia.dlq.0.{{ . }}.*" } }
      { service: { account: COORDINATORS, subject: "fantasia.log.0.{{ . }}.*" } }
{{- end }}
      { service: { account: COORDINATORS, subject: "fantasia.metric.0.*.*.*" } }
      { stream: { account: COORDINATORS, subject: "fantasia.control.0.*.*" } }
    ]
  }
}
{{ end -}}
