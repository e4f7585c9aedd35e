package server_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/api/server"
)

// claimGrants reads the lines of a file of grants.
func claimGrants(dir, text string) (*server.ClaimGrants, string, error) {
	file := filepath.Join(dir, "grants")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, file, err
	}
	g, err := server.ReadClaimGrants(file, slog.New(slog.DiscardHandler))
	return g, file, err
}

func TestClaimGrants(t *testing.T) {
	g, _, err := claimGrants(t.TempDir(), strings.Join([]string{
		"# what the groups may do", "", "groups=ml write ml-", "  groups=all read\t", `groups="data science" write ds-,lab-`,
		"sub=system:serviceaccount:tuning:client write", "email=alice@example.com read", "https://example.com/role=admin write", "n=1 write",
		"quoted=\"\\\"\" read",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		claims string
		want   string // of Grant
	}{
		{`{"groups": "ml"}`, "write [ml-] [ml-]"},
		{`{"groups": ["x", "ml"]}`, "write [ml-] [ml-]"},
		{`{"groups": ["ml", "data science"]}`, "write [ml- ds- lab-] [ml- ds- lab-]"},
		{`{"groups": ["ml", "all"]}`, "write [] [ml-]"},
		{`{"groups": ["all"]}`, "read [] []"},
		{`{"groups": ["ml"], "sub": "system:serviceaccount:tuning:client"}`, "write [] []"},
		{`{"email": "alice@example.com", "email_verified": true}`, "read [] []"},
		{`{"email": "alice@example.com", "email_verified": "true"}`, "read [] []"},
		{`{"email": "alice@example.com", "email_verified": false}`, "none"},
		{`{"email": "alice@example.com"}`, "none"},
		{`{"https://example.com/role": "admin"}`, "write [] []"},
		{`{"quoted": "\""}`, "read [] []"},
		{`{"n": 1}`, "none"},
		{`{"n": [1]}`, "none"},
		{`{"groups": "ML"}`, "none"},
		{`{"Groups": "ml"}`, "none"},
		{`{"groups": "ml all"}`, "none"},
		{`{"groups": {"ml": true}}`, "none"},
		{`{"groups": [["ml"]]}`, "none"},
		{`{"groups": null}`, "none"},
		{`{}`, "none"},
	} {
		var claims map[string]json.RawMessage
		if err := json.Unmarshal([]byte(test.claims), &claims); err != nil {
			t.Fatal(err)
		}
		got := "none"
		grant, looked, ok := g.Grant(claims)
		if ok {
			got = fmt.Sprint(map[bool]string{true: "write", false: "read"}[grant.Write], " ", grant.Prefixes, " ", grant.WritePrefixes)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.claims, got, test.want)
		}
		if want := []string{"groups", "sub", "email", "https://example.com/role", "n", "quoted"}; !slices.Equal(looked, want) {
			t.Errorf("looked at %q, want %q", looked, want)
		}
	}
}

func TestClaimGrantsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"groups":                                    `:1: the line does not begin with the name of a claim and =; want CLAIM=VALUE read|write`,
		"groups=ml write\n\n# x\ngroups=ml":         ":4: got 0 words after the claim and its value; want CLAIM=VALUE read|write",
		"groups=ml admin":                           `:1: role "admin" of groups=ml: must be read or write`,
		"groups= write":                             ":1: the claim's value is empty",
		`groups="" write`:                           ":1: the claim's value is empty",
		`groups="ml write`:                          ":1: the quotes of the claim's value do not end",
		`groups="ml"write`:                          ":1: a space must follow the quotes",
		"=ml write":                                 ":1: the line does not begin",
		"the groups=ml write":                       "does not begin",
		"groups =ml write":                          "does not begin",
		"groups=ml write a,,b":                      `:1: prefixes "a,,b" of groups=ml: one is empty`,
		"groups=ml write a b":                       ":1: got 3 words after the claim and its value",
		"groups=data science write":                 `:1: role "science" of groups=data`,
		"groups=ml " + strings.Repeat("x", 100_000): "the line is longer than 64 KiB",
	} {
		_, file, err := claimGrants(t.TempDir(), text)
		if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want an error with the file and %q", text, err, want)
		}
	}
}

// An error does not show a secret from a file that was named by mistake.
func TestClaimGrantsShowNoSecret(t *testing.T) {
	for _, text := range []string{"s3cret", "s3cret==", "s3cret=", `s3cret="x`, `s3cret="x"y`, "s3cret = x", "password: s3cret"} {
		if _, _, err := claimGrants(t.TempDir(), text); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want an error without the secret", text, err)
		}
	}
}

// A token may do to a study exactly what one of the lines that match it allows.
func TestTokensGetWhatTheirLinesGrant(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab]{1,2}`)
		type line struct {
			claim, value string
			write        bool
			prefixes     []string
		}
		var text strings.Builder
		var lines []line
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			l := line{word.Draw(t, "claim"), word.Draw(t, "value"), rapid.Bool().Draw(t, "write"), rapid.SliceOfN(word, 0, 2).Draw(t, "prefixes")}
			lines = append(lines, l)
			fmt.Fprintf(&text, "%s=%s %s %s\n", l.claim, l.value, map[bool]string{true: "write", false: "read"}[l.write],
				strings.Join(l.prefixes, ","))
		}
		g, _, err := claimGrants(dir, text.String())
		if err != nil {
			t.Fatal(err)
		}
		has := rapid.MapOfN(word, rapid.SliceOfN(word, 0, 3), 0, 4).Draw(t, "claims")
		claims := map[string]json.RawMessage{}
		for name, values := range has {
			if claims[name], err = json.Marshal(values); err != nil {
				t.Fatal(err)
			}
		}
		grant, _, ok := g.Grant(claims)
		study := rapid.StringMatching(`[ab]{1,4}`).Draw(t, "study")
		var matches, reads, writes bool
		for _, l := range lines {
			if !slices.Contains(has[l.claim], l.value) {
				continue
			}
			matches = true
			if len(l.prefixes) == 0 || slices.ContainsFunc(l.prefixes, func(p string) bool { return strings.HasPrefix(study, p) }) {
				reads, writes = true, writes || l.write
			}
		}
		if ok != matches || ok && (grant.Covers(study) != reads || grant.Changes(study) != writes) {
			t.Fatalf("%q: got %v, %+v; want match %t, read %t, write %t", study, ok, grant, matches, reads, writes)
		}
	})
}

// Any text is a file of grants or an error that names the file, and a token without claims
// gets nothing of it.
func FuzzClaimGrants(f *testing.F) {
	for _, text := range []string{"groups=ml write a-,b-\nsub=x read", `groups="a b" read`, "# x\n\n=", `a="\x00" write`, "a==b read", `a="`} {
		f.Add(text)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		g, file, err := claimGrants(dir, text)
		if err != nil {
			if !strings.Contains(err.Error(), file) {
				t.Errorf("%v does not name the file", err)
			}
			return
		}
		grant, looked, ok := g.Grant(nil)
		if ok || grant.Write {
			t.Errorf("a token without claims gets %+v", grant)
		}
		for _, claim := range looked {
			if claim == "" || strings.ContainsAny(claim, " \t\n=") {
				t.Errorf("the claim %q", claim)
			}
			if !strings.Contains(text, claim+"=") {
				t.Errorf("the claim %q is not in the text", claim)
			}
		}
	})
}
