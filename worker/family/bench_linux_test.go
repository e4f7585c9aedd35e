package family

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkStart compares a program that does nothing in a family of each kind with one that
// os/exec starts.
func BenchmarkStart(b *testing.B) {
	program := func() *exec.Cmd {
		cmd := exec.Command("/bin/true")
		cmd.Env = append(os.Environ(), Variable+"=bench")
		return cmd
	}
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := program().Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, parent := range map[string]string{"cgroup": ownCgroup(), "adopted": ""} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			for b.Loop() {
				cmd, m, err := startIn(parent, program(), dir, "bench")
				if err != nil {
					b.Fatal(err)
				}
				f := &Family{cmd: cmd, members: m}
				f.Wait()
				if err := f.Close(time.Now().Add(time.Minute)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
