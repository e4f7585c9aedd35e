package docs

import (
	"os"
	"runtime"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// What is downloaded once may be large, but docs/ARCHITECTURE.md says how large. The programs are those
// that the documents' commands run, which go run links as they are released, without debug information.
func TestProgramsAreAsLargeAsToldAtMost(t *testing.T) {
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		t.Skip("the sizes are those of linux/amd64")
	}
	for name, most := range map[string]int64{"fantasia": 90, "coordinator": 70, "kubeworker": 50, "worker": 25} {
		info, err := os.Stat(testenv.Build(t, "github.com/fantasia-hpo/fantasia/cmd/"+name))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s has %.1f MB", name, float64(info.Size())/1e6)
		if info.Size() > most*1e6 {
			t.Errorf("%s has %.1f MB, want at most %d", name, float64(info.Size())/1e6, most)
		}
	}
}
