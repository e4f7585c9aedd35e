package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
)

// ClaimGrants holds what the claims of a token grant, from a file that is read again when it
// changes. A line is
//
//	CLAIM=VALUE read|write [PREFIX,PREFIX…] [QUOTA=BOUND…]
//
// It grants a role to tokens whose claim is VALUE, or a list that has VALUE. A VALUE with
// spaces is written in double quotes, as in Go. PREFIX limits the line to studies whose
// names begin with it. QUOTA is the name of a quota (package quota), and bounds what the line
// covers. The lines that match a token add up. Empty lines and lines that begin with # are
// ignored. Safe for concurrent use.
type ClaimGrants struct{ file *watched[[]claimLine] }

// claimLine is a line of the file.
type claimLine struct {
	claim, value string
	grant        Grant
}

// ReadClaimGrants reads a file of grants; its error names the line.
func ReadClaimGrants(file string, log *slog.Logger) (*ClaimGrants, error) {
	w, err := watch(file, "the previous grants stay in force", parseClaimLines, log)
	if err != nil {
		return nil, err
	}
	return &ClaimGrants{w}, nil
}

// Grant returns what at least one matching line grants; ok is false if no line matches.
// looked has the names of the claims that the lines ask for.
func (c *ClaimGrants) Grant(claims map[string]json.RawMessage) (g Grant, looked []string, ok bool) {
	limited, limitedWrites := true, true // by prefixes
	for _, l := range c.file.get() {
		if !slices.Contains(looked, l.claim) {
			looked = append(looked, l.claim)
		}
		if !l.matches(claims) {
			continue
		}
		ok = true
		limited = limited && len(l.grant.Prefixes) > 0
		g.Prefixes = append(g.Prefixes, l.grant.Prefixes...)
		g.Shares = append(g.Shares, l.grant.Shares...)
		if l.grant.Write {
			g.Write = true
			limitedWrites = limitedWrites && len(l.grant.Prefixes) > 0
			g.WritePrefixes = append(g.WritePrefixes, l.grant.Prefixes...)
		}
	}
	if !limited {
		g.Prefixes = nil
	}
	if !limitedWrites {
		g.WritePrefixes = nil
	}
	return g, looked, ok
}

// matches reports whether a token has the claim's value. An address of mail counts only if
// the issuer says that it was verified; with some issuers people can enter any address.
func (l claimLine) matches(claims map[string]json.RawMessage) bool {
	if l.claim == "email" && !slices.Contains([]string{"true", `"true"`}, string(claims["email_verified"])) {
		return false
	}
	var one any
	if json.Unmarshal(claims[l.claim], &one) != nil {
		return false
	}
	if many, ok := one.([]any); ok {
		return slices.Contains(many, any(l.value))
	}
	return one == any(l.value)
}

func parseClaimLines(file string) (lines []claimLine, err error) {
	err = eachLine(file, func(line string) error {
		l, err := parseClaimLine(line)
		lines = append(lines, l)
		return err
	})
	return lines, err
}

// parseClaimLine reads a line. Its errors do not show what cannot be read, which may be a secret from a
// file that was named by mistake.
func parseClaimLine(line string) (l claimLine, err error) {
	const want = "want CLAIM=VALUE read|write [PREFIX,PREFIX…] [QUOTA=BOUND…]"
	claim, rest, ok := strings.Cut(line, "=")
	if !ok || claim == "" || len(strings.Fields(claim)) != 1 || strings.TrimSpace(claim) != claim {
		return l, fmt.Errorf("the line does not begin with the name of a claim and =; %s", want)
	}
	l.claim = claim
	if strings.HasPrefix(rest, `"`) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return l, fmt.Errorf("the quotes of the claim's value do not end; %s", want)
		}
		rest = rest[len(quoted):]
		if l.value, err = strconv.Unquote(quoted); err != nil || rest != "" && strings.TrimLeft(rest, " \t") == rest {
			return l, fmt.Errorf("a space must follow the quotes of the claim's value; %s", want)
		}
	} else {
		end := strings.IndexAny(rest+" ", " \t")
		l.value, rest = rest[:end], rest[end:]
	}
	if l.value == "" {
		return l, fmt.Errorf("the claim's value is empty; %s", want)
	}
	fields := strings.Fields(rest)
	if words, _ := cutQuotas(fields); len(words) < 1 || len(words) > 2 {
		return l, fmt.Errorf("got %d words after the claim and its value; %s", len(words), want)
	}
	return l, l.grant.setRole(claim+"="+l.value, fields)
}
