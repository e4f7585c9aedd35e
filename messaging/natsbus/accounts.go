package natsbus

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// The accounts of a NATS configured by Accounts, and the coordinators' user.
const (
	AccountCoordinators = "COORDINATORS"
	AccountWorkers      = "WORKERS"
	UserCoordinator     = "coordinator"
)

// Accounts describes the two accounts of an installation. The coordinators' account
// holds the streams. The workers' account imports as services what a worker may call,
// and nothing else. The users of the workers' account are pools, whose workers share a
// password, and single workers.
type Accounts struct {
	// Shard is the shard of the workers; messaging.Shard by default.
	Shard string
	// Pools are the pools whose workers share a user, PoolUser.
	Pools []string
	// Workers are the workers, in the form of messaging.WorkerName, that have a user of
	// their own, WorkerUser, which may only speak in that worker's name. Their pools
	// need not be among Pools.
	Workers []string
	// MaxStore limits the streams' data on disk, in bytes; 0 is no limit.
	MaxStore int64
	// Identity is, by user, a public NKey, a bcrypt hash, or a variable ($NAME) of
	// nats-server's environment that holds a password or hash. The default is the
	// user's PasswordVariable.
	Identity map[string]string
}

// PoolUser returns the user of a pool's workers.
func PoolUser(pool string) string { return "pool-" + pool }

// WorkerUser returns the user of one worker, whose name has the form of
// messaging.WorkerName.
func WorkerUser(name string) string { return "worker-" + name }

// PasswordVariable returns the variable of nats-server's environment that holds a
// user's password, unless Accounts.Identity sets another.
func PasswordVariable(user string) string {
	return "PASSWORD_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(user))
}

// accountUser is one user of the configuration.
type accountUser struct {
	Name, Identity string
	// Pool is the pool's name; Worker is the worker's name in it, or the wildcard.
	Pool, Worker string
}

// accountsText is the configuration. A name in angle brackets stands for a text that is filled in. nats-server demands:
//
//   - One export, of everything, and only to the workers' account. An answer that
//     comes back through an import is published in the workers' account on the
//     request's reply subject, whatever that is; where this is an import without
//     wildcards, it would be carried on into a stream: a worker could have the
//     acknowledgement of its claim stored as another's result. The server drops
//     what comes back into the export that it came from: with one, that is all.
//   - Answers are streams, since a fetch is answered by heartbeats before its
//     message. Such an answer has no end, so the server forgets it, about 0.6 kB
//     each, when it has been silent for the threshold, and looks once in that
//     time: it is longer than the 5 s between two heartbeats.
//   - A user's permissions hold for what it publishes and subscribes to, the
//     imports for what there is at all; a pool's names are tokens of their own in
//     the subjects, so that both can tell pools apart.
//   - An inbox belongs to a pool and worker, and so do control messages.
const accountsText = `accounts {
  <coordinators> {
    jetstream <jetstream>
    users [
      { <identity> }
    ]
    exports [
      { service: ">", response_type: stream, response_threshold: "30s", accounts: [<workers>] }
      { stream: "fantasia.control.<shard>.*.*", accounts: [<workers>] }
    ]
  }
  <workers> {
    users [
<users>    ]
    imports [
<imports>      { service: { account: <coordinators>, subject: "fantasia.metric.<shard>.*.*.*" } }
      { stream: { account: <coordinators>, subject: "fantasia.control.<shard>.*.*" } }
    ]
  }
}
`

// userText is a user of the workers' account.
const userText = `      { <identity>, permissions {
        publish [
          "$JS.API.CONSUMER.MSG.NEXT.<stream>.pool_<shard>_<pool>"
          "$JS.ACK.<stream>.pool_<shard>_<pool>.*.*.*.*.*", "fantasia.claim.<shard>.<pool>.*.*.*"
          "fantasia.result.<shard>.<pool>.<worker>.*.*.*", "fantasia.metric.<shard>.*.*.*"
          "fantasia.heartbeat.<shard>.<pool>.<worker>", "fantasia.dlq.<shard>.<pool>.<worker>"
          "fantasia.log.<shard>.<pool>.<worker>"
        ]
        subscribe ["_INBOX.<pool>.<worker>.>", "fantasia.control.<shard>.<pool>.<worker>"]
      } }
`

// importsText is what the workers' account imports for a pool.
const importsText = `      { service: { account: <coordinators>, subject: "$JS.API.CONSUMER.MSG.NEXT.<stream>.pool_<shard>_<pool>" } }
      { service: { account: <coordinators>, subject: "$JS.ACK.<stream>.pool_<shard>_<pool>.*.*.*.*.*" } }
      { service: { account: <coordinators>, subject: "fantasia.claim.<shard>.<pool>.*.*.*" } }
      { service: { account: <coordinators>, subject: "fantasia.result.<shard>.<pool>.*.*.*.*" } }
      { service: { account: <coordinators>, subject: "fantasia.heartbeat.<shard>.<pool>.*" } }
      { service: { account: <coordinators>, subject: "fantasia.dlq.<shard>.<pool>.*" } }
      { service: { account: <coordinators>, subject: "fantasia.log.<shard>.<pool>.*" } }
`

// identity is how the user is known to the server.
func (u accountUser) identity() string {
	if isNKey(u.Identity) {
		return "nkey: " + u.Identity
	}
	return fmt.Sprintf("user: %q, password: %s", u.Name, u.Identity)
}

func isNKey(identity string) bool {
	return len(identity) == 56 && identity[0] == 'U' &&
		strings.Trim(identity, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// Config returns the accounts block of nats-server's configuration file. The error
// names a wrong name or identity.
func (a Accounts) Config() (string, error) {
	a.Shard = cmp.Or(a.Shard, messaging.Shard)
	users, pools, err := a.users()
	if err != nil {
		return "", err
	}
	identities, err := a.identities(users)
	if err != nil {
		return "", err
	}
	for i := range users {
		users[i].Identity = identities[users[i].Name]
	}
	// Every name is a token and every identity was checked, so none needs quotes of its own. A
	// replacer does not look again at what it has put in.
	common := []string{"<coordinators>", AccountCoordinators, "<workers>", AccountWorkers, "<stream>", streamAssign, "<shard>", a.Shard}
	fill := func(text string, more ...string) string {
		return strings.NewReplacer(slices.Concat(common, more)...).Replace(text)
	}
	var confined, imports strings.Builder
	for _, u := range users[1:] {
		confined.WriteString(fill(userText, "<identity>", u.identity(), "<pool>", u.Pool, "<worker>", u.Worker))
	}
	for _, pool := range pools {
		imports.WriteString(fill(importsText, "<pool>", pool))
	}
	store := "enabled"
	if a.MaxStore > 0 {
		store = "{ max_memory: -1, max_store: " + strconv.FormatInt(a.MaxStore, 10) + ", max_streams: -1, max_consumers: -1 }"
	}
	return fill(accountsText, "<jetstream>", store, "<identity>", users[0].identity(), "<users>", confined.String(),
		"<imports>", imports.String()), nil
}

// users returns all users, the coordinators' first, and the names of all pools.
func (a Accounts) users() (users []accountUser, pools []string, err error) {
	if !messaging.ValidToken(a.Shard) {
		return nil, nil, fmt.Errorf("shard %q: not a valid token", a.Shard)
	}
	if len(a.Pools)+len(a.Workers) == 0 {
		return nil, nil, errors.New("no pool; want at least one")
	}
	if a.MaxStore < 0 {
		return nil, nil, fmt.Errorf("store of %d bytes: must be at least 0", a.MaxStore)
	}
	users = []accountUser{{Name: UserCoordinator}}
	for _, pool := range a.Pools {
		if !messaging.ValidToken(pool) {
			return nil, nil, fmt.Errorf("pool %q: must be 1 to %d of A-Z a-z 0-9 - _", pool, messaging.MaxToken)
		}
		users = append(users, accountUser{Name: PoolUser(pool), Pool: pool, Worker: "*"})
		pools = append(pools, pool)
	}
	for _, worker := range a.Workers {
		pool, name, ok := strings.Cut(worker, ".")
		if !ok || !messaging.ValidWorker(worker) {
			return nil, nil, fmt.Errorf("worker %q: must be POOL.NAME, each 1 to %d of A-Z a-z 0-9 - _", worker, messaging.MaxToken)
		}
		users = append(users, accountUser{Name: WorkerUser(worker), Pool: pool, Worker: name})
		pools = append(pools, pool)
	}
	slices.Sort(pools)
	return users, slices.Compact(pools), nil
}

// identities checks and returns the identity of each user.
func (a Accounts) identities(users []accountUser) (map[string]string, error) {
	all, of := map[string]string{}, map[string]string{}
	for _, u := range users {
		if _, ok := all[u.Name]; ok {
			return nil, fmt.Errorf("user %s: named twice", u.Name)
		}
		given, ok := a.Identity[u.Name]
		if !ok {
			given = "$" + PasswordVariable(u.Name)
		}
		switch {
		case isNKey(given):
		case isBcrypt(given):
			given = `"` + given + `"`
		case len(given) > 1 && given[0] == '$' && messaging.ValidToken(given[1:]) && !strings.Contains(given, "-"):
		default:
			return nil, fmt.Errorf("identity of user %s: must be a public user NKey (U…), a bcrypt hash ($2a$…) or a variable ($NAME)", u.Name)
		}
		if other, ok := of[given]; ok {
			return nil, fmt.Errorf("users %s and %s have one identity, %s: give each its own", other, u.Name, given)
		}
		all[u.Name], of[given] = given, u.Name
	}
	for name := range a.Identity {
		if _, ok := all[name]; !ok {
			return nil, fmt.Errorf("identity of user %s: there is no such user", name)
		}
	}
	return all, nil
}

// isBcrypt reports whether s is a bcrypt hash in its usual form.
func isBcrypt(s string) bool {
	const length = 60
	return len(s) == length && (strings.HasPrefix(s, "$2a$") || strings.HasPrefix(s, "$2b$") || strings.HasPrefix(s, "$2y$")) &&
		!strings.ContainsAny(s, "\"\\\r\n ")
}
