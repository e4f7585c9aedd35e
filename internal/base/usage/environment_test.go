package usage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/usage"
	"github.com/spf13/cobra"
)

func TestEnvironment(t *testing.T) {
	t.Setenv("FANTASIA_LEASE_TTL", "9s")
	t.Setenv("FANTASIA_NAME", "from the environment")
	cmd := &cobra.Command{Use: "test"}
	ttl := cmd.Flags().Duration("lease-ttl", time.Second, "")
	name := cmd.Flags().String("name", "", "")
	if err := cmd.Flags().Parse([]string{"--name=given"}); err != nil {
		t.Fatal(err)
	}
	if err := usage.Environment(cmd); err != nil {
		t.Fatal(err)
	}
	if *ttl != 9*time.Second || *name != "given" {
		t.Errorf("lease-ttl is %v and name %q, want the environment's 9s and the flag's given", *ttl, *name)
	}
}

func TestEnvironmentNamesTheVariable(t *testing.T) {
	t.Setenv("FANTASIA_SLOTS", "many")
	cmd := &cobra.Command{Use: "test"}
	cmd.Flags().Int("slots", 1, "")
	if err := usage.Environment(cmd); err == nil || !strings.Contains(err.Error(), `FANTASIA_SLOTS="many"`) {
		t.Errorf("Environment: %v, want an error that names FANTASIA_SLOTS and its value", err)
	}
}
