package running

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"codehand/tools/bash"
	"codehand/tools/sandbox"
)

// ownProcesses is said of a command that looked for a process of another command, or of the person, and met none.
const ownProcesses = "[commands see only their own processes; job_stop ends jobs]"

// seeking are the programs that find processes by a name, a file or a port.
var seeking = []string{"pkill", "pgrep", "killall", "pidof", "lsof", "fuser", "ps", "ss", "netstat"}

// noProcess finds what kill prints about a process that is not there, or that another program did not find for it.
var noProcess = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)no such process|usage:\s+kill|kill: usage|kill: not enough arguments`)
})

// ownShims is said of `corepack enable`, which writes beside its own program: only an option names another place.
const ownShims = `[corepack enable writes to a directory of the system; for commands: corepack enable ` +
	`--install-directory "$COREPACK_HOME/../bin"]`

// corepackEnables finds what corepack prints where it cannot write.
var corepackEnables = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`E(?:ROFS|ACCES|PERM)[^\n]*(?:symlink|unlink) .*(?:pnpm|yarn)`)
})

// corepackFails finds the traces that corepack prints when it fails: a pipe can leave nothing else of what it said.
var corepackFails = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s+at .*corepack\.cjs:\d+`)
})

// cutCorepack returns the line about corepack of which a pipe, as `| tail -2`, left the end of a trace; "": the rest is
// there, or nothing here made it fail.
func (o *Outcome) cutCorepack(said string) string {
	if !corepackFails().MatchString(said) || strings.Contains(said, "Error") {
		return ""
	}
	enables := slices.ContainsFunc(o.Env.Analysis.Parts, func(part bash.Part) bool {
		return slices.ContainsFunc(part.Forms, func(form string) bool {
			return strings.Contains(form, "corepack enable") && !strings.Contains(form, "--install-directory")
		})
	})
	if enables {
		return ownShims
	}
	return o.Confined.NoNetwork()
}

// unmet returns the line about a command that met no process, or no directory that it may write; "": it did not look
// for one, or may have met it. said is what it printed, failed that its exit code is not 0.
func (o *Outcome) unmet(said string, failed bool) string {
	if o.Confined.Profile == nil || o.Confined.Level < sandbox.LevelFull || o.Env.Analysis == nil {
		return "" // it sees every process of the user
	}
	if runs(o.Env.Analysis, "corepack") && corepackEnables().MatchString(said) {
		return ownShims
	}
	if runs(o.Env.Analysis, "corepack") {
		if line := o.cutCorepack(said); line != "" {
			return line
		}
	}
	silent := strings.TrimSpace(said) == ""
	if !failed && (!silent || len(o.Env.Analysis.Parts) < 2) {
		return "" // a single program that did not fail has met one
	}
	if runs(o.Env.Analysis, seeking...) || runs(o.Env.Analysis, "kill") && noProcess().MatchString(said) {
		return ownProcesses
	}
	return ""
}

// runs says whether one of the simple commands is one of these programs.
func runs(a *bash.Analysis, programs ...string) bool {
	return slices.ContainsFunc(a.Parts, func(part bash.Part) bool {
		return slices.ContainsFunc(slices.Concat(part.Forms, part.Perhaps), func(form string) bool {
			words := strings.Fields(form)
			return len(words) > 0 && slices.Contains(programs, path.Base(words[0]))
		})
	})
}
