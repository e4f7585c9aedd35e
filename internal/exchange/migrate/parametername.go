package migrate

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/fantasia-hpo/fantasia/study/space"
)

// ParameterName returns the name that a study has for a parameter of another tuner: the same
// name if a study can have it. Otherwise it is made of the name's letters and digits and of a
// checksum, so that different names stay different. The Python client has the same function;
// testdata/names.json is the test of both.
func ParameterName(name string) string {
	if space.NameProblem(name) == "" {
		return name
	}
	return plainName(name)
}

// plainName returns a name that is made of a text's letters and digits, and of a checksum.
func plainName(name string) string {
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, name)
	return fmt.Sprintf("%s_%x", plain[:min(len(plain), 40)], sha256.Sum256([]byte(name)))[:min(len(plain), 40)+9]
}
