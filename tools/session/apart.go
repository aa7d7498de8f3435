package session

import (
	"codehand/tools/agent"
	"codehand/tools/sandbox"
)

// unheld says why an isolated session has no commands where nothing would keep them in its work tree.
const unheld = "this sub-agent works in a git work tree of its own, and no sandbox of this machine (codehand doctor) " +
	"would keep commands in it"

// KeepApart narrows the session to a work tree: it reads and changes no file elsewhere, and its commands are kept there
// by the kernel. Where the kernel does not, it has none. The zero Apart changes nothing.
func (s *State) KeepApart(a agent.Apart) {
	if a.Tree == "" {
		return
	}
	s.Apart = a
	part, _ := s.Space.Narrowing([]string{a.Tree})
	s.Space = s.Space.Narrow(part).Readable(a.Repository)
	roots := s.Space.Roots()
	s.Rules, s.Clean = s.Rules.AlsoFrom(roots), s.Clean.AlsoFrom(roots)
	if s.Prefs.NoShell == "" && s.Confine.Reported().Level < sandbox.LevelKernel {
		s.Prefs.NoShell = unheld
	}
}

// Repositories are those of work trees that lie outside of the roots, and that commands may change.
func (s *State) Repositories() []string {
	if s.Apart.Repository == "" {
		return nil
	}
	return []string{s.Apart.Repository}
}
