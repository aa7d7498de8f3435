// Package sandbox starts a process with a filtered environment and its own session, and ends its whole tree.
//
// It is the only room that starts programs. Levels of confinement by the kernel are not built yet: a process runs at
// level 1 (limits), and every caller can say so.
package sandbox

import (
	"context"
	"os"
	"time"
)

// A Level is how far a process is confined.
type Level int

// The levels.
const (
	LevelNone   Level = iota
	LevelLimits       // environment filtered, own session, tree ended
)

// A Cmd is a program to start. There is no shell between: Args are its arguments.
type Cmd struct {
	Path           string // absolute
	Args           []string
	Env            []string
	Dir            *os.Root // working directory, entered through the handle
	Stdout, Stderr *os.File // nil: /dev/null; stdin always is
}

// An Exit is how the direct child ended.
type Exit struct {
	Code   int
	Signal string // "SIGSEGV"; "": it exited
}

// A Process is a running process tree.
type Process struct {
	// unexported: helper F
}

// Start starts c in a new session and process group.
func Start(ctx context.Context, c Cmd) (*Process, error) { panic("skeleton") }

// Done is closed when the direct child has ended.
func (p *Process) Done() <-chan struct{} { panic("skeleton") }

// Exit returns how the direct child ended; valid after Done.
func (p *Process) Exit() Exit { panic("skeleton") }

// End ends every process of the tree: SIGTERM, then SIGKILL after grace. It returns how many were ended. It may be
// called after Done, to end what the child left running, and more than once.
func (p *Process) End(grace time.Duration) int { panic("skeleton") }

// EnvOptions say what an environment is made of.
type EnvOptions struct {
	Roots []string // PATH entries below these are left out
	Temp  string   // TMPDIR
	Allow []string // further names or NAME_* the operator passes on
}

// Environ builds the environment of a command from nothing: an allow-list of the server's own variables, and ours.
func Environ(o EnvOptions) []string { panic("skeleton") }
