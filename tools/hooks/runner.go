package hooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/tools/permission"
)

const (
	// DefaultTimeout is the limit of a hook that sets none.
	DefaultTimeout = time.Minute
	// MaxTimeout is what it may have at most.
	MaxTimeout = 10 * time.Minute
)

// A Hook is one program of the operator.
type Hook struct {
	Event   string          // PreToolUse and the like
	Matcher string          // "", "*": everything; see newMatcher
	If      permission.Rule // Text "": always
	Command []string        // program (absolute, or a name for PATH) and arguments; no shell reads them
	Timeout time.Duration   // 0: DefaultTimeout
	Async   bool            // started, never waited for, cannot decide
	Project bool            // of a project that is trusted to run it: it allows nothing
	Origin  string          // file and line
}

// Options of a Runner.
type Options struct {
	Hooks      []Hook
	Classifier []string // the command that judges calls in mode auto, as in Hook.Command; empty: none
	Notify     []string // the command that tells a person that a call waits, likewise
	OwnNames   bool     // hooks are told our names of tools instead of those that other agents use
	FailClosed bool     // a hook that may decide and fails blocks the call
	EnvAllow   []string // variables that programs get beside the usual ones
	EnvSecret  []string // likewise, also those that sound like a secret
	Withhold   []string // variables that hold keys of the operator, which no program gets
	Written    []string // directories besides the roots that commands write: no program is looked for there
	Personal   bool     // programs get the agents and the display of the person who started this process
	Home       string   // what `~/` in a condition means
	Log        *slog.Logger
}

// A Runner runs hooks. It is safe for concurrent use.
type Runner struct {
	Grace time.Duration // that programs still have in Close; 1.5 s, unless it is changed before Close

	judging time.Duration // that the classifier has; 10 s, unless a test changes it
	o       Options
	hooks   map[string][]hook // by event, in the order of the configuration
	log     *slog.Logger
	running running
}

// A hook is a Hook that was read.
type hook struct {
	Hook
	matcher matcher
	when    *permission.Condition // nil: always
}

// New reads the hooks. An error names the origin of each one that cannot be understood: a guard that is silently
// ignored would be a hole. Whether a program is there is found out when it is started.
func New(o Options) (*Runner, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Runner{Grace: closeGrace, judging: classifierTime, o: o, hooks: map[string][]hook{}, log: o.Log}
	var errs []error
	for _, h := range o.Hooks {
		read, err := newHook(h, o.Home)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.hooks[h.Event] = append(r.hooks[h.Event], read)
	}
	for name, command := range map[string][]string{"permissions.classifier": o.Classifier, "console.notify": o.Notify} {
		if len(command) > 0 {
			if err := checkCommand(command); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

func newHook(h Hook, home string) (hook, error) {
	wrong := func(format string, args ...any) (hook, error) {
		return hook{}, fmt.Errorf("%s: "+format, append([]any{h.Origin}, args...)...)
	}
	if !slices.Contains(events[:], h.Event) {
		return wrong("there is no event %q; the events are %s", h.Event, strings.Join(events[:], ", "))
	}
	if err := checkCommand(h.Command); err != nil {
		return wrong("%w", err)
	}
	if h.Timeout == 0 {
		h.Timeout = DefaultTimeout
	}
	if h.Timeout < time.Millisecond || h.Timeout > MaxTimeout {
		return wrong("a hook has between 1 ms and %v, not %v", MaxTimeout, h.Timeout)
	}
	m, err := newMatcher(h.Matcher)
	if err != nil {
		return wrong("matcher: %w", err)
	}
	read := hook{Hook: h, matcher: m}
	if h.If.Text != "" {
		c, err := permission.Compile(h.If, home)
		if err != nil {
			return hook{}, err // names the origin itself
		}
		read.when = &c
	}
	return read, nil
}

// checkCommand refuses what would be looked for in whatever directory the server happens to run in.
func checkCommand(command []string) error {
	if len(command) == 0 || command[0] == "" {
		return errors.New("the command is empty")
	}
	if name := command[0]; !filepath.IsAbs(name) && filepath.Base(name) != name {
		return fmt.Errorf("command %q: give an absolute path, or a name that is in PATH", name)
	}
	return nil
}

// Wants says whether any hook is told of the event of that name.
func (r *Runner) Wants(event string) bool { return len(r.hooks[event]) > 0 }

// Before asks the PreToolUse hooks. The error is that of a ctx that ended; every program was ended then.
func (r *Runner) Before(ctx context.Context, e Event) (Outcome, error) {
	e.Name = PreToolUse
	return r.ask(ctx, e)
}

// Asked asks the PermissionRequest hooks. Errors are those of Before.
func (r *Runner) Asked(ctx context.Context, e Event) (Outcome, error) {
	e.Name = PermissionRequest
	return r.ask(ctx, e)
}

// After asks the hooks about a call that is done. Errors are those of Before.
func (r *Runner) After(ctx context.Context, e Event) (Outcome, error) {
	e.Name = PostToolUse
	if e.Failed {
		e.Name = PostToolUseFailure
	}
	return r.ask(ctx, e)
}

// Starting asks the SubagentStart hooks about a sub-agent that is about to start. Errors are those of Before.
func (r *Runner) Starting(ctx context.Context, e Event) (Outcome, error) {
	e.Name = SubagentStart
	return r.ask(ctx, e)
}

// ask runs all hooks that match, at the same time, and puts together what they say.
func (r *Runner) ask(ctx context.Context, e Event) (Outcome, error) {
	matching := r.matching(e)
	if len(matching) == 0 {
		return Outcome{}, nil
	}
	input, err := r.input(e)
	if err != nil {
		return Outcome{}, err
	}
	answers := make([]answer, len(matching))
	var wg sync.WaitGroup
	for i, h := range matching {
		if h.Async {
			r.later(h, e, input)
			continue
		}
		wg.Go(func() {
			held, release, ok := r.running.hold(ctx)
			if !ok {
				answers[i] = answer{origin: h.Origin, failed: errStopped}
				return
			}
			defer release()
			answers[i] = r.one(held, h, e, input)
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return Outcome{}, err
	}
	return r.combine(e, answers), nil
}

// Tell runs hooks of an event that they cannot stop. It returns at once; Close ends what still runs.
func (r *Runner) Tell(e Event) {
	matching := r.matching(e)
	if len(matching) == 0 {
		return
	}
	input, err := r.input(e)
	if err != nil {
		r.log.Warn("hooks could not be told", "event", e.Name, "error", err)
		return
	}
	for _, h := range matching {
		r.later(h, e, input)
	}
}

// later runs a hook in the background.
func (r *Runner) later(h hook, e Event, input []byte) {
	if !r.running.background(func(ctx context.Context) { r.one(ctx, h, e, input) }) {
		r.log.Warn("a hook was not started: too many are running", "event", e.Name, "hook", h.Origin)
	}
}

// one runs one hook and reads its answer. What a program does wrong is logged here. The caller holds it in running.
func (r *Runner) one(ctx context.Context, h hook, e Event, input []byte) (a answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			a = answer{origin: h.Origin, failed: fmt.Errorf("panic: %v", panicked)}
			r.log.Error("a hook's answer", "event", e.Name, "hook", h.Origin, "error", a.failed)
		}
	}()
	p := r.program(h.Command, h.Timeout, e, input)
	if h.Project && e.Confine != nil {
		p.confine = func() (Confined, error) { return e.Confine(h.Async) }
	}
	done := p.run(ctx)
	a = readAnswer(e.Name, done)
	a.origin, a.project = h.Origin, h.Project
	switch {
	case ctx.Err() != nil && done.err != nil && !errors.Is(done.err, errStopped):
		// The caller cancelled it, and knows.
	case a.failed != nil:
		r.log.Warn("a hook failed", "event", e.Name, "hook", h.Origin, "error", a.failed,
			"stderr", shortened(done.stderr))
	case a.message != "":
		r.log.Info("a hook says", "event", e.Name, "hook", h.Origin, "message", shortened(a.message))
	}
	return a
}

// Close ends every program. They get a moment to end by themselves, so that a SessionEnd hook can do its work. Nothing
// can be started afterwards.
func (r *Runner) Close() { r.running.close(r.Grace) }
