package permission

import "mvdan.cc/sh/v3/syntax"

// prove says whether the rules R0 to R6 hold for every part of the command: then it is ReadOnly.
func (s *script) prove(inside func(string) bool) (Class, string) { return Unknown, "R1: not read" }

// provePart is prove for one simple command alone, with its redirections; what stands around it does not count.
func (s *script) provePart(stmt *syntax.Stmt, inside func(string) bool) (Class, string) {
	return Unknown, "R1: not read"
}
