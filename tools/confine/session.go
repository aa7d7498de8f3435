package confine

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"codehand/tools/confine/caches"
	"codehand/tools/confine/look"
	"codehand/tools/credentials"
	"codehand/tools/permission"
	"codehand/tools/sandbox"
	"codehand/tools/sandbox/proxy"
)

// A Session is what confines the commands of one session. nil confines none.
type Session struct {
	*Confiner

	Temp     string   // its temporary directory, made when a command first needs it
	Readable []string // what it may read besides its roots: kept results, logs of jobs, skills

	desk *credentials.Desk // hands git the person's passwords; nil: it gets none

	toldLower atomic.Bool // that commands are confined less than before
}

// A Command is how one command is confined.
type Command struct {
	Profile *sandbox.Profile // nil: not at all
	Level   sandbox.Level
	Gaps    []string
	Groups  *sandbox.Groups // limits its memory and processes; nil: nothing does
	Spares  *sandbox.Spares // makes it start sooner; nil: nothing does
	Env     []string        // besides its usual environment
	News    string          // a line for its answer, about what has changed for commands; "": nothing
	Empty   []string        // programs whose private caches have nothing yet, such as "go": a first build is slow
	Proxy   *proxy.Proxy    // its way to the network; the caller serves it at Process.Listener. nil: it has none

	// Hold keeps the private caches as they are until release, for the time of the command; nil: it has none
	Hold func() (release func(), err error)

	pass    passwords
	configs *configs    // what the command may change of git's configuration; nil: nothing
	hooks   *hookCopies // and writes of git's hooks, with configs only
	reasons
}

// reasons are why Profile refuses.
type reasons struct {
	by       map[string]string // rules by their paths
	obeyed   AllObeyed
	readOnly bool // it is the profile of commands that only read
	personal bool // commands are of the person whose settings are in force
	unshared bool // see desktop.unshared
}

// An UnavailableError means that commands need more than this machine does, or that it was too busy to prove what it
// does: then Failed.Passing is set.
type UnavailableError struct {
	Proven, Needed sandbox.Level
	Failed         *sandbox.Failure
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("sandbox level %d is proven, %d is needed", e.Proven, e.Needed)
}

// An UnkeptError means that deny rules about files cannot be kept for a command: there is too much to look through.
type UnkeptError struct {
	Rules []permission.Rule
}

func (e *UnkeptError) Error() string {
	texts := make([]string, len(e.Rules))
	for i, r := range e.Rules {
		texts[i] = r.Text + " (" + r.Origin + ")"
	}
	return fmt.Sprintf("the roots have more than %d files and directories to look through for what these rules "+
		"deny: %s", look.Most, strings.Join(texts, ", "))
}

// sockets is the gap of a machine on which commands reach Unix sockets that they cannot see.
const sockets = "sockets"

// Command returns how a command is confined; u.Readable and u.Temp are the session's. It waits until the machine was
// probed. Errors: *UnavailableError, *UnkeptError, *DeniedError, or that the temporary directory cannot be made.
func (s *Session) Command(u Use) (Command, error) {
	if s == nil {
		return Command{Level: sandbox.LevelLimits}, nil
	}
	if s.o.Off {
		return Command{}, nil
	}
	proven := s.o.Proven()
	if needed := s.o.Needed(); proven.Unknown() || proven.Level < needed {
		return Command{}, &UnavailableError{proven.Level, needed, proven.Failed}
	}
	c := Command{Level: proven.Level, Gaps: slices.Clone(proven.Gaps), reasons: reasons{personal: s.o.Personal}}
	if proven.Lowered && !s.toldLower.Swap(true) {
		c.News = lowered(proven)
	}
	if u.Background && proven.Level == sandbox.LevelFull {
		c.Gaps = append(c.Gaps, "missing-names")
	}
	if proven.Level < sandbox.LevelKernel {
		return c, nil
	}
	u.Readable, u.Temp = s.Readable, s.Temp
	if !u.ReadOnly {
		if err := os.MkdirAll(s.Temp, 0o700); err != nil {
			return Command{}, err
		}
	}
	roots := u.Roots
	p, found, now, not := s.profile(&u)
	if proven.Level == sandbox.LevelFull {
		if err := not.at(u.Dir, roots, c.opener()); err != nil {
			return Command{}, err
		}
		if len(now.Broken) > 0 {
			return Command{}, &UnkeptError{now.Broken}
		}
		if len(now.Missed) > 0 {
			c.Gaps = append(c.Gaps, "rules-outside-roots")
		}
		if now.Unlinked {
			c.Gaps = append(c.Gaps, "hard-links")
		}
	}
	if !u.ReadOnly {
		desktop := s.desktop()
		c.Gaps, c.unshared = append(c.Gaps, desktop.gaps...), desktop.unshared
		if p.Network == sandbox.NetworkOn && proven.Level < sandbox.LevelFull && !slices.Contains(c.Gaps, sockets) {
			c.Gaps = append(c.Gaps, sockets) // also that of the session bus: the kernel does not tell them apart
		}
	}
	if proven.Level == sandbox.LevelFull && !u.ReadOnly && u.Configs {
		if line := s.killed(u); line != "" {
			c.News = strings.TrimPrefix(c.News+"\n"+line, "\n")
		}
		c.configs = s.ownConfigs(&p, u, found, now.Keep)
		c.hooks = ownHooks(&p, c.configs.written, now.Keep)
	}
	p.Processes = proven.Processes
	c.Profile, c.Groups, c.Spares = &p, proven.Groups, proven.Spares
	c.by, c.obeyed, c.readOnly = now.by, found.obeyed, u.ReadOnly
	if all, inspected := s.cache(); all != "" {
		c.Hold = func() (func(), error) { return caches.Hold(filepath.Dir(all)) }
		if u.ReadOnly { // without a network it fills no cache but that of go's compiler
			c.Empty = slices.DeleteFunc(emptyCaches(inspected), func(program string) bool { return program != "go" })
		} else {
			c.Empty = emptyCaches(all)
		}
	}
	c.Env = s.Environ(u, proven.Level == sandbox.LevelFull)
	if p.Network == sandbox.NetworkList && proven.Level == sandbox.LevelFull {
		c.Proxy = proxy.New(s.o.Network.Domains, s.o.Network.Addresses)
		c.Env = append(c.Env, proxy.Env(sandbox.ProxyAddress)...)
	}
	if proven.Level == sandbox.LevelFull && !u.ReadOnly && u.Configs {
		s.openDoor(&c, u.Ask)
	}
	return c, nil
}

// lowered says that commands are confined less than an earlier process proved.
func lowered(now sandbox.Report) string {
	why := ""
	if now.Failed != nil {
		why = ": " + now.Failed.Probe
	}
	return fmt.Sprintf("[sandbox level %d from now on: this machine does not confine commands as it did when codehand "+
		"last proved it%s; codehand doctor says what to do]", now.Level, why)
}

// Serve serves what the command connects to, until ctx ends.
func (c Command) Serve(ctx context.Context, l net.Listener) error {
	if c.Proxy == nil {
		return l.Close() // nothing is allowed
	}
	return c.Proxy.Serve(ctx, l)
}

// Level is how far what the server starts is confined. It waits until the machine was probed. Of a machine that was too
// busy to prove a level it is the highest: what cannot be confined so far does not start.
func (o Options) Level() sandbox.Level {
	if o.Off {
		return sandbox.LevelNone
	}
	proven := o.Proven()
	if proven.Unknown() {
		return sandbox.LevelFull
	}
	return proven.Level
}

// Trusted says whether a command that is confined needs no question: the operator said so, the machine was proven, and
// what the command reads has no open way out.
func (s *Session) Trusted() bool {
	return s != nil && s.o.AutoAllow && s.Holds()
}

// Network is what commands that write may connect to where they are confined.
func (s *Session) Network() sandbox.Network {
	if s == nil || s.o.Off {
		return sandbox.NetworkOn
	}
	return s.o.Network.Network
}

// Holds says whether the kernel holds commands at level 3, so that it decides what they can do. It waits until the
// machine was probed.
func (s *Session) Holds() bool {
	return s != nil && !s.o.Off && s.o.Proven().Level == sandbox.LevelFull
}

// Runs says for people at which level and in which profile a command runs: the one that changes nothing, or the one of
// the workspace; or why none runs. It waits until the machine was probed.
func (s *Session) Runs(readOnly bool) string {
	if s == nil || s.o.Off {
		return "with the rights of the server (sandbox.policy is off)"
	}
	proven, needed := s.o.Proven(), s.o.Needed()
	text := fmt.Sprintf("at sandbox level %d", proven.Level)
	switch {
	case proven.Unknown() || proven.Level < needed:
		return fmt.Sprintf("not at all: %s is proven, %d is needed", strings.TrimPrefix(text, "at "), needed)
	case proven.Level < sandbox.LevelKernel:
		return text + ", with the rights of the server"
	case readOnly:
		return text + ", in the profile that changes nothing and reaches no network"
	case s.Network() == sandbox.NetworkOff:
		return text + ", in the profile of the workspace, without network"
	case s.Network() == sandbox.NetworkOn:
		return text + ", in the profile of the workspace, with network"
	}
	return text + ", in the profile of the workspace, with the listed hosts"
}

// Known is Reported, if that is known without waiting.
func (s *Session) Known() (r sandbox.Report, known bool) {
	if s == nil || s.o.Off {
		return sandbox.Report{}, true
	}
	return s.o.Known()
}

// Untold notes that a model was told where it works while this was not known.
func (s *Session) Untold() {
	if s != nil {
		s.untold.Store(true)
	}
}

// Owed says whether a model was told where it works while this was not known.
func (s *Session) Owed() bool { return s != nil && s.untold.Load() }

// Unreached names the setting that keeps a job of the session from the network, if errors, what it printed, tells that
// it missed one; "": it did not, or it has one. It never waits.
func (s *Session) Unreached(errors string) string {
	known, ok := s.Known()
	if !ok || known.Level < sandbox.LevelKernel {
		return ""
	}
	p := &sandbox.Profile{Network: s.o.Network.Network, Sockets: true}
	return Command{Level: known.Level, Profile: p, reasons: reasons{personal: s.o.Personal}}.Unreached(errors)
}

// Reported returns what is in force, for people: level, gaps, and why it is not more.
func (s *Session) Reported() sandbox.Report {
	if s == nil || s.o.Off {
		return sandbox.Report{}
	}
	r := s.o.Proven()
	r.Gaps = slices.Clone(r.Gaps)
	if r.Level >= sandbox.LevelKernel {
		r.Gaps = append(r.Gaps, s.desktop().gaps...)
	}
	return r
}
