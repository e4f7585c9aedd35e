package view

// ReasonEtcdAway is the reason, in a google.rpc.ErrorInfo of ErrorDomain, of an error
// that says that etcd does not answer.
const (
	ReasonEtcdAway = "ETCD_AWAY"
	ErrorDomain    = "fantasia.dev"
)
