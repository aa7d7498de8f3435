package sandbox

import (
	"errors"
	"os"

	"codehand/tools/sandbox/kernel"
)

// A Level is how far a process is confined.
type Level int

// The levels. Each denies what the one before it denies, and more (security.md 5.7).
const (
	LevelNone   Level = iota
	LevelLimits       // environment filtered, own session, limits, tree ended, also if the server dies
	LevelKernel       // files, sockets, signals and memory of others, by Landlock and a filter of system calls
	LevelFull         // sees only what its Profile names, in namespaces of its own
)

// A Profile says what a command may reach. The zero value is the strictest: it reads the system's directories, writes
// into a private temporary directory, and has no network.
type Profile = kernel.Profile

// A Link is a file that a command finds as a link: see Profile.Linked.
type Link = kernel.Link

// A Network is what a command may connect to.
type Network = kernel.Network

// The networks.
const (
	NetworkOff  = kernel.NetworkOff  // itself, at LevelFull; nothing below
	NetworkList = kernel.NetworkList // a port of its loopback, which the server serves: see Process.Listener
	NetworkOn   = kernel.NetworkOn   // whatever the server may connect to
)

// ProxyAddress is where a command with NetworkList reaches what Process.Listener accepts.
const ProxyAddress = kernel.ProxyAddress

// A Report says how far this machine was proven to confine commands.
type Report struct {
	Level Level
	Gaps  []string // what Level promises and this machine does not keep, such as "memory"
	// Groups limits memory and processes of commands by control groups; its limits are the usual ones. nil: nothing
	// here does, Gaps says so, and Ungrouped says why.
	Groups    *Groups
	Ungrouped string
	// Processes and Spares are for the commands that Profile and Cmd make. The caller of Probe sets them.
	Processes int
	Spares    *Spares
	Failed    *Failure // why Level is not LevelFull; nil: it is
	// Lowered says that Recall returned a higher level than this one, which was proven later. The caller of Probe
	// sets it.
	Lowered bool
}

// A Failure is a probe that a level needs and that this machine does not pass.
type Failure struct {
	Level  Level  // that it was for
	Probe  string // what was tried, as "start in namespaces: operation not permitted"
	Remedy string // what the operator can do
	// Passing: the machine had no time or nothing left for the probe, so another one may pass. Report.Level is then
	// LevelLimits, and not what the machine can do.
	Passing bool
}

// Unknown reports whether the machine was too busy to prove what it can do. Then no command runs, or it would run with
// less than it had a moment before.
func (r Report) Unknown() bool { return r.Failed != nil && r.Failed.Passing }

// limitGaps returns the limits that the kernel does not keep without control groups.
func limitGaps(l Level) []string {
	if l < LevelFull || os.Geteuid() == 0 {
		return []string{"memory", "process-count"} // the kernel does not count processes of root
	}
	return []string{"memory"}
}

// ErrConfine means that the machine cannot confine a command as far as was asked for; nothing was started.
var ErrConfine = errors.New("the command cannot be confined")
