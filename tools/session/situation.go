package session

import (
	"fmt"
	"strings"

	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/sandbox"
)

// maxSituation is how long a Situation may be, in bytes: every conversation pays for it.
const maxSituation = 300

// Situation tells a model where its calls work, in at most 300 bytes: its directories, the current one, the mode, and
// how far commands are confined, if that is known: a new client does not wait for it. begins: it is about sessions to
// come, not about one that has begun.
func (s *State) Situation(mode permission.Mode, begins bool) string {
	roots := s.Space.Roots()
	for i, root := range roots {
		roots[i] = shownPath(root)
	}
	cwd, subject := shownPath(s.Space.Cwd()), "This session is"
	if begins {
		subject = "A session starts"
	}
	r, known := s.Confine.Known()
	commands := ""
	switch {
	case s.Prefs.NoShell != "":
		commands = " No commands run here."
	case known:
		commands = " Commands are " + s.Confined(r.Level, "them") + "."
	case begins:
		s.Confine.Untold() // the first command's answer says it
	}
	for n := len(roots); n >= 0; n-- {
		text := fmt.Sprintf("Your directories: %s. %s in %s, mode %s.%s", some(roots, n), subject, cwd, mode, commands)
		if len(text) <= maxSituation {
			return text
		}
	}
	return fmt.Sprintf("Your directories: %s. %s in mode %s.%s", some(roots, 0), subject, mode, commands)
}

// Confined says how far commands are confined at a level, to directories under the name dirs.
func (s *State) Confined(level sandbox.Level, dirs string) string {
	switch network := s.Confine.Network(); {
	case level < sandbox.LevelKernel:
		return "not confined to " + dirs
	case network == sandbox.NetworkOff:
		return "confined to " + dirs + " and have no network"
	case network == sandbox.NetworkList:
		return "confined to " + dirs + " and to listed hosts"
	}
	return "confined to " + dirs
}

// some are the first n of names, and how many there are besides.
func some(names []string, n int) string {
	switch left := len(names) - n; {
	case len(names) == 0:
		return "none"
	case left == 0:
		return strings.Join(names, ", ")
	case n == 0:
		return fmt.Sprintf("%d, whose names are too long for this line", left)
	default:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), left)
	}
}

// shownPath is a path that stays in its line.
func shownPath(path string) string {
	shown, _ := results.Show(path)
	return strings.ReplaceAll(shown, "\n", `\x0a`)
}
