package envflag_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/envflag"
	"github.com/spf13/cobra"
)

func TestApply(t *testing.T) {
	t.Setenv("FANTASIA_LEASE_TTL", "9s")
	t.Setenv("FANTASIA_NAME", "from the environment")
	cmd := &cobra.Command{Use: "test"}
	ttl := cmd.Flags().Duration("lease-ttl", time.Second, "")
	name := cmd.Flags().String("name", "", "")
	if err := cmd.Flags().Parse([]string{"--name=given"}); err != nil {
		t.Fatal(err)
	}
	if err := envflag.Apply(cmd); err != nil {
		t.Fatal(err)
	}
	if *ttl != 9*time.Second || *name != "given" {
		t.Errorf("lease-ttl is %v and name %q, want the environment's 9s and the flag's given", *ttl, *name)
	}
}

func TestApplyNamesTheVariable(t *testing.T) {
	t.Setenv("FANTASIA_SLOTS", "many")
	cmd := &cobra.Command{Use: "test"}
	cmd.Flags().Int("slots", 1, "")
	if err := envflag.Apply(cmd); err == nil || !strings.Contains(err.Error(), `FANTASIA_SLOTS="many"`) {
		t.Errorf("Apply: %v, want an error that names FANTASIA_SLOTS and its value", err)
	}
}
