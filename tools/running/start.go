package running

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"codehand/tools/bash"
	"codehand/tools/git"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// Weigh takes from what was proved of a command's text all that does not hold on this machine: in another shell than
// bash nothing, and git only where the repository itself does not make it start programs (at sandbox levels below 2
// nothing else keeps those in), nor reads what read_file may not read.
//
// Where the kernel holds commands, nothing of that is looked at.
func Weigh(s *session.State, a *bash.Analysis) {
	g := inspector(s)
	switch {
	case s.Shell != nil && s.Confine.Holds():
		a.Hold()
		return
	case s.Shell != nil && s.Shell.Dialect().PowerShell != "":
		a.Foreign("commands run in " + s.Shell.Dialect().PowerShell + ", which cannot be checked")
	case s.Shell == nil || !s.Shell.Dialect().Bash:
		a.Doubt("bash is not installed, and other shells cannot be checked")
	case runtime.GOOS == "windows":
		a.Doubt("programs and paths of Windows are not those that were checked")
	case len(a.Git) > 0:
		if why := g.ReadsOnly(s.Space.Cwd(), a.Git); why != "" {
			a.Distrust(why)
		}
	}
	if a.GitShows {
		if s.Rules.Compares(false) {
			a.Distrust("it shows what it keeps, and a rule is about files")
		} else if why := g.ShowsMore(s.Space.Cwd(), a.Git); why != "" {
			a.Distrust(why)
		}
	}
}

// inspector looks at the repositories of one command.
func inspector(s *session.State) *git.Inspector {
	g := &git.Inspector{Files: s.Files, Inside: s.Space.Inside, Above: s.Key.Local()}
	if s.Rules.Compares(false) {
		g.Ruled = func(path string) bool { return s.Rules.Ruled(path, false) != permission.Allow }
	}
	return g
}

// StillReads refuses a command that was let through as one that only reads, if its repository has been given a
// configuration meanwhile by which it does more.
func StillReads(env tool.Env, command string) error {
	a := env.Analysis
	if a.Held || a.Class != bash.ReadOnly || len(a.Git) == 0 {
		return nil
	}
	if why := inspector(env.State).ReadsOnly(env.Space.Cwd(), a.Git); why != "" {
		return NotReadOnly(command, "git: "+why)
	}
	return nil
}

// NotReadOnly refuses a command with the first reason for which it is not proved to change nothing.
func NotReadOnly(command, why string) error {
	return tool.Refuse(tool.NotReadOnly, "%q is not read-only: %s. Use run_shell.", wording.Clip(command, 200),
		wording.Clip(why, 200))
}

// Timeout is how long a command may run: asked in ms, 0: the default. A model that means seconds writes 30.
func Timeout(asked int, preset, most time.Duration) (time.Duration, []string) {
	want := time.Duration(min(asked, int(most/time.Millisecond)+1)) * time.Millisecond
	switch {
	case asked == 0:
		return min(preset, most), nil
	case want < time.Second:
		return time.Second,
			[]string{fmt.Sprintf("[timeout raised from %d ms to 1000 ms; the unit is milliseconds]", asked)}
	case want > most:
		return most, []string{fmt.Sprintf("[timeout lowered from %d ms to %d ms, the maximum]", asked,
			most.Milliseconds())}
	}
	return want, nil
}

// Dir opens the session's current directory, or the first root if it is gone.
func Dir(env tool.Env) (*os.Root, []string, error) {
	cwd := env.Space.Cwd()
	place, err := env.Space.Open(cwd, workspace.Read)
	var notes []string
	if roots := env.Space.Roots(); errors.Is(err, fs.ErrNotExist) && len(roots) > 0 {
		notes = []string{"[" + cwd + " is gone. Shell cwd was reset to " + roots[0] + "]"}
		cwd = roots[0]
		place, err = env.Space.Open(cwd, workspace.Read)
	}
	if err != nil {
		return nil, nil, wording.PathRefusal(env, cwd, err)
	}
	defer place.Dir.Close()
	dir, err := place.Dir.OpenRoot(place.Name + "/.") // a FIFO that was put there meanwhile would be waited for
	return dir, notes, wording.PathRefusal(env, cwd, err)
}
