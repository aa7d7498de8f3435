package sandbox

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkStart compares the levels with bash alone and with bubblewrap, in turns, since a machine is not equally busy
// all the time. "spare" is a command at LevelFull for which a helper waits. It reports the median of each in milliseconds.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	profile := &Profile{Writable: []string{dir}}
	spares := NewSpares()
	defer spares.Close()
	start := func(level Level, profile *Profile, spares *Spares) func() error {
		return func() error {
			p, err := Start(b.Context(), Cmd{
				Path: "/bin/bash", Args: []string{"-c", "true"}, Env: []string{"PATH=" + defaultPath}, Dir: root,
				Profile: profile, Level: level, Spares: spares,
			})
			if err == nil {
				<-p.Done()
				p.End(0)
			}
			return err
		}
	}
	ways := map[string]func() error{
		"bash":   func() error { return exec.Command("/bin/bash", "-c", "true").Run() },
		"limits": start(LevelLimits, nil, nil), "kernel": start(LevelKernel, profile, nil), "full": start(LevelFull, profile, nil),
		"spare": start(LevelFull, profile, spares),
	}
	if _, err := exec.LookPath("bwrap"); err == nil {
		ways["bwrap"] = func() error {
			return exec.Command("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
				"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev",
				"--tmpfs", "/tmp", "--bind", dir, dir, "--chdir", dir, "bash", "-c", "true").Run()
		}
	}
	took := map[string][]float64{}
	for b.Loop() {
		for name, run := range ways {
			spares.making.Wait() // between two commands of a client there is more time than that takes
			begin := time.Now()
			if err := run(); err != nil {
				b.Fatal(name, err)
			}
			took[name] = append(took[name], float64(time.Since(begin).Microseconds())/1000)
		}
	}
	for name, list := range took {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], name+"-ms")
	}
	b.ReportMetric(0, "ns/op")
}
