package natsbus_test

import (
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// accounts is the configuration, and sets the variables of the passwords that it
// names, for this process and its children: "password of USER".
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
		t.Setenv(name, `"password of `+user+`"`) // nats-server reads it as a value of its configuration
	}
	return text
}
