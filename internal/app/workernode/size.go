package workernode

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// SizePattern matches the sizes that Size reads, as a regular expression.
const SizePattern = `^[0-9]+((Ki|Mi|Gi|Ti)B?)?$`

// sizeUnits are the units of a size, the largest first, and 1 for bytes.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}, {"", 1}}

// Size returns a flag that sets a number of bytes, such as 10Gi or 512MiB.
func Size(bytes *int64) pflag.Value { return (*size)(bytes) }

type size int64

// Type implements pflag.Value.
func (s *size) Type() string { return "size" }

// String implements pflag.Value. It uses the largest unit that the size is a multiple of.
func (s *size) String() string {
	for _, u := range sizeUnits {
		if n := int64(*s); n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0"
}

// Set implements pflag.Value.
func (s *size) Set(text string) error {
	number := strings.TrimSuffix(text, "B")
	for _, u := range sizeUnits {
		digits, found := strings.CutSuffix(number, u.name)
		if !found || u.bytes == 1 && number != text { // a B needs a unit
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > uint64(math.MaxInt64/u.bytes) {
			break
		}
		*s = size(int64(n) * u.bytes)
		return nil
	}
	return errors.New("want a number of bytes with Ki, Mi, Gi or Ti, such as 10Gi")
}
