// Package testseed gives tests the seed of what they draw.
package testseed

import (
	"os"
	"strconv"
)

// Get returns 1, unless RAPID_SEED is another seed. Rapid reads this variable as well, so that
// one seed gives the draws of all tests.
func Get() uint64 {
	if seed, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 10, 64); err == nil && seed > 0 {
		return seed
	}
	return 1
}
