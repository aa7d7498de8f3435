package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/filestate/leaktest"
	"codehand/tools/sandbox/probe"
)

// Arguments of the test binary as a confined process.
const (
	escapeAll = "codehand-escapes"
	escapeOne = "codehand-escape" // with the name of the attempt; the scene is in the environment
)

const escapeScene = "ESCAPE_SCENE"

// An escape is an attempt to leave a profile. Those that nothing refuses must succeed where there is no profile, or
// they would prove nothing.
type escape struct {
	probe.Attempt
	root bool // without a profile only root can
	// free is why it cannot be shown to succeed without a profile; "": it does.
	free string
	// done judges from outside, after the process has ended; nil: Try knows.
	done func(*probe.Scene) bool
	// alone is for what may end the process: it runs in one of its own.
	alone bool
	// always is for what the network is for, and is forbidden with a network, too.
	always bool
}

// errOutside means that only who stands outside sees whether an attempt succeeded.
var errOutside = errors.New("seen from outside")

// escapeChild is the test binary as a confined process, if it is one.
func escapeChild() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == escapeAll:
		var attempts []probe.Attempt
		for _, e := range escapes() {
			if a := e.Attempt; e.alone {
				a.Try = func(s *probe.Scene) error { return apart(a.Name, s) }
				e.Attempt = a
			}
			attempts = append(attempts, e.Attempt)
		}
		os.Exit(probe.Serve(os.Stdin, os.Stdout, attempts))
	case len(os.Args) == 3 && os.Args[1] == escapeOne:
		var s probe.Scene
		err := json.Unmarshal([]byte(os.Getenv(escapeScene)), &s)
		for _, e := range escapes() {
			if err == nil && e.Name == os.Args[2] {
				err = e.Try(&s)
			}
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// apart tries one thing in a process of its own.
func apart(name string, s *probe.Scene) error {
	scene, err := json.Marshal(s)
	if err != nil {
		return err
	}
	c := exec.Command("/proc/self/exe", escapeOne, name)
	c.Env = append(os.Environ(), escapeScene+"="+string(scene))
	out, err := c.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case strings.Contains(string(out), probe.ErrAbsent.Error()):
		return probe.ErrAbsent
	}
	return fmt.Errorf("%w: %s", err, out)
}

// escapes are all attempts: the probes, and what only tests try.
func escapes() []escape {
	var list []escape
	for _, a := range probe.Probes() {
		e := escape{Attempt: a, always: a.Name == "connect by MPTCP" || a.Name == "connect to an abstract socket"}
		if a.Level == 1 {
			e.free = "every level forbids it"
		}
		list = append(list, e)
	}
	return slices.Concat(list, fileEscapes(), protectedEscapes(), processEscapes(), socketEscapes(), kernelEscapes(),
		programEscapes(), machineEscapes())
}

// TestEscapes tries at least 60 ways out of each profile, at each level. At level 3 none leads out; at levels 2 and 1
// those do whose gap is reported, and no others.
func TestEscapes(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	for level := LevelFull; level >= LevelLimits; level-- {
		for _, c := range []struct {
			name    string
			write   bool
			network Network
			gate    bool // runs in the gate
		}{
			{"read", false, NetworkOff, level == LevelFull},
			{"write", true, NetworkOff, level == LevelLimits}, // where each attempt shows that it can succeed
			{"net", true, NetworkOn, level == LevelFull},
		} {
			t.Run(fmt.Sprintf("%d-%s", level, c.name), func(t *testing.T) {
				t.Parallel()
				if !c.gate {
					leaktest.OutsideGate(t, "tries what other profiles show, too")
				}
				testEscapes(t, level, c.write, c.network)
			})
		}
	}
}

// networked are the gaps that a network opens, which is what it is for.
var networked = []string{probe.NetworkGap, probe.Sockets, probe.Interfaces, probe.ReadableSockets}

func testEscapes(t *testing.T, level Level, write bool, network Network) {
	ended, reported := tryEscapes(t, level, write, network)
	tried, absent := 0, []string{}
	for _, e := range escapes() {
		if !e.Applies(write) || network == NetworkOn && !e.always && slices.Contains(networked, e.Gap) {
			continue
		}
		o, ok := ended[e.Name]
		forbidden := Level(e.Level) <= level
		switch {
		case !ok:
			t.Errorf("%s: was not tried", e.Name)
		case o.Absent || !forbidden && unknown(o.Refused):
			absent = append(absent, e.Name)
			continue
		case o.Done && forbidden:
			t.Errorf("%s: succeeded, which this level forbids", e.Name)
		case o.Done && !slices.Contains(reported, e.Gap):
			t.Errorf("%s: succeeded, and the gap %q is not reported: %q", e.Name, e.Gap, reported)
		case !o.Done && level == LevelLimits && e.free == "" && !(e.root && os.Geteuid() != 0):
			t.Errorf("%s: is refused without a profile, so it proves nothing: %s", e.Name, o.Refused)
		}
		tried++
	}
	if tried < 60 {
		t.Errorf("%d attempts were made, want 60", tried)
	}
	t.Logf("%d attempts; not possible here: %q; gaps: %q", tried, absent, reported)
}

// unknown reports whether an error says that the kernel does not have something. Where it is forbidden, it says the same.
func unknown(refused string) bool {
	return slices.ContainsFunc([]error{unix.ENOSYS, unix.EAFNOSUPPORT}, func(err error) bool {
		return strings.Contains(refused, err.Error())
	})
}

// tryEscapes returns how all attempts ended, and the gaps that a report of this level names.
func tryEscapes(t *testing.T, level Level, write bool, network Network) (map[string]probe.Outcome, []string) {
	t.Helper()
	g, err := openGround(t.Context(), leaktest.Public(t)) // short, since it is part of addresses of sockets
	must(t, err)
	defer g.close()
	done, err := g.try(t.Context(), level)
	if errors.Is(err, ErrConfine) {
		cannot(t, err)
	}
	must(t, err)

	s, end, err := g.scene(write)
	must(t, err)
	defer end()
	stage(t, g, s)
	p := g.profile(s)
	p.Network = network
	list, err := g.play(t.Context(), s, p, level, escapeAll)
	must(t, err)
	ended := map[string]probe.Outcome{}
	for _, o := range list {
		ended[o.Name] = o
	}
	for _, e := range escapes() {
		o := ended[e.Name]
		if e.done != nil && !o.Absent && o.Name != "" {
			o.Done = e.done(s)
			ended[e.Name] = o
		}
	}
	return ended, gapsOf(done)
}

// stage makes what only tests want in a scene.
func stage(t *testing.T, g *ground, s *probe.Scene) {
	t.Helper()
	files := map[string]string{
		s.Root + "/below/.git/config":     s.Token,
		s.Root + "/.git/hooks/pre-commit": "#!/bin/sh\n",
		s.Root + "/below/deep/file":       s.Token,
		s.Root + "/place/file":            s.Token,
	}
	for _, way := range slices.Concat(fileEscapes(), protectedEscapes(), machineEscapes()) {
		for _, dir := range []string{s.Root, s.Seen} {
			files[dir+"/"+slug(way.Name)] = s.Token
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(files[path]), 0o600))
	}
	for _, dir := range []string{s.Root, s.Seen} {
		must(t, os.Mkdir(dir+"/empty", 0o700))
	}
	for name, to := range map[string]string{"to-seen": s.Seen, "to-unlisted": s.Unlisted, "to-hidden": s.Hidden} {
		must(t, os.Symlink(to, filepath.Join(s.Root, name)))
	}
	stagePrograms(t, s)
	stageProcesses(t, s)
}

// slug is the name of the canary of an attempt.
func slug(name string) string {
	return "c-" + strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "/", "_")
}
