package natsbus_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// accounts returns the configuration with its variables replaced by passwords:
// "password of USER".
func accounts(t *testing.T, a natsbus.Accounts) string {
	t.Helper()
	text, err := a.Config()
	must(t, err)
	users := []string{natsbus.UserCoordinator}
	for _, p := range a.Pools {
		users = append(users, natsbus.PoolUser(p))
	}
	for _, w := range a.Workers {
		users = append(users, natsbus.WorkerUser(w))
	}
	for _, user := range users {
		name := natsbus.PasswordVariable(user)
		if !strings.Contains(text, "$"+name) {
			t.Fatalf("the configuration does not name $%s:\n%s", name, text)
		}
		text = strings.ReplaceAll(text, "$"+name, `"password of `+user+`"`)
	}
	return text
}

func TestAccountsRefuse(t *testing.T) {
	const hash = "$2a$10$XajjQvNhvvRt5GSeFk1xFeyqRrsxkhBkUiQeg0dt.wU1qD4aFDcga"
	for name, test := range map[string]struct {
		a    natsbus.Accounts
		want string
	}{
		"no pool":             {natsbus.Accounts{}, "no pool"},
		"a pool of all":       {natsbus.Accounts{Pools: []string{"*"}}, `pool "*"`},
		"a pool with a dot":   {natsbus.Accounts{Pools: []string{"a.b"}}, `pool "a.b"`},
		"a pool twice":        {natsbus.Accounts{Pools: []string{"a", "a"}}, "user pool-a: named twice"},
		"a worker of no pool": {natsbus.Accounts{Workers: []string{"w"}}, `worker "w"`},
		"all workers":         {natsbus.Accounts{Workers: []string{"a.*"}}, `worker "a.*"`},
		"one variable":        {natsbus.Accounts{Pools: []string{"a-b", "a_b"}}, "have one identity"},
		"a password": {natsbus.Accounts{Pools: []string{"a"}, Identity: map[string]string{"pool-a": "secret"}},
			"identity of user pool-a"},
		"more than a value": {natsbus.Accounts{Pools: []string{"a"}, Identity: map[string]string{"pool-a": "$A, account: B"}},
			"identity of user pool-a"},
		"nobody's identity": {natsbus.Accounts{Pools: []string{"a"}, Identity: map[string]string{"pool-b": hash}}, "no such user"},
		"a negative store":  {natsbus.Accounts{Pools: []string{"a"}, MaxStore: -1}, "store of -1"},
		"a shard of all":    {natsbus.Accounts{Pools: []string{"a"}, Shard: "*"}, "shard"},
	} {
		if text, err := test.a.Config(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error with %q, and no configuration: %s", name, err, test.want, text)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
}

// A user can be identified by a password whose hash the server has (the hash is a test
// vector of crypt_blowfish, of a low cost), or by a key.
func TestIdentities(t *testing.T) {
	const password, hash = "U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
	key, err := nkeys.CreateUser()
	must(t, err)
	public, err := key.PublicKey()
	must(t, err)
	text := accounts(t, natsbus.Accounts{Pools: []string{pool}, MaxStore: 1 << 30})
	b := startBrokerWith(t, text)
	b.stop()
	b.accounts, err = natsbus.Accounts{Pools: []string{pool}, MaxStore: 1 << 30,
		Identity: map[string]string{natsbus.PoolUser(pool): hash, natsbus.UserCoordinator: public}}.Config()
	must(t, err)
	b.start()
	ctx := patient(t)
	nc := b.connectWith(append(natsbus.ConnectOptions("coordinator"), nats.Nkey(public, key.Sign)))
	l, err := natsbus.NewLeader(nc, natsbus.LeaderOptions{})
	must(t, err)
	closeAtEnd(t, l)
	must(t, l.Setup(ctx, []string{pool}))
	b.connectWith(append(natsbus.WorkerConnectOptions(pool, "w"), nats.UserInfo(natsbus.PoolUser(pool), password)))
	if _, err := nats.Connect("", nats.InProcessServer(b), nats.UserInfo(natsbus.PoolUser(pool), hash)); err == nil {
		t.Error("the hash was taken for the password")
	}
}
