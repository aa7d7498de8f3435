package delegating

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"codehand/tools/agent"
	"codehand/tools/agent/loop"
	"codehand/tools/results"
	"codehand/tools/running"
	"codehand/tools/secrets"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// now is the time by which the mode of a session is looked up.
var now = time.Now

// beat is how often the client is told that sub-agents still work when nothing new has happened.
const beat = 10 * time.Second

// A work is the sub-agents of one call while they work, in a job.
type work struct {
	env        tool.Env
	runs       []*agent.Run
	background bool // from the start
	stays      bool // it never moves to the background
	trees      trees

	watched atomic.Bool // the call still waits
	began   time.Time
	result  tool.Result // set by the job before it ends
}

// do begins the job, and waits for it unless it is in the background.
func (w *work) do(ctx context.Context) (tool.Result, error) {
	w.began = time.Now()
	w.watched.Store(!w.background)
	if w.background {
		w.alone() // before the work begins, or its first question would still reach the client
	}
	job, err := shell.Begin(ctx, w.env.Shell, shell.Command{Text: w.title(), Background: w.background}, w.work)
	if err != nil {
		for _, x := range w.runs {
			x.Drop()
		}
		w.trees.settle(ctx, w.env)
		if errors.Is(err, shell.ErrJobLimit) {
			return tool.Result{}, tool.Refuse(tool.JobLimit, "Too many jobs run at once. Stop one with job_stop: %s.",
				running.JobNames(ctx, w.env))
		}
		return tool.Result{}, wording.StartRefusal(err)
	}
	if w.background {
		return w.started(job.Info(), "Started job "+job.Info().ID+": "+w.title()), nil
	}
	defer job.Release()
	info, err := w.wait(ctx, job)
	w.watched.Store(false)
	if err != nil {
		return tool.Result{}, err // it has ended
	}
	if info.State == shell.Running {
		w.alone()
		info = job.Detach(0)
	}
	if info.State == shell.Running {
		return w.started(info, fmt.Sprintf("Still running after %s; moved to the background as %s.",
			running.JobAge(info), info.ID)), nil
	}
	return w.result, nil
}

func (w *work) alone() {
	for _, x := range w.runs {
		x.Alone()
	}
}

// title is how lists name the job.
func (w *work) title() string {
	if len(w.runs) > 1 {
		return fmt.Sprintf("%d agents: %s", len(w.runs), wording.LineOf(w.runs[0].Title(), 60))
	}
	return "agent " + w.runs[0].Type() + ": " + wording.LineOf(cmp.Or(w.runs[0].Title(), w.runs[0].ID), 80)
}

// started is the answer about a job that goes on.
func (w *work) started(i shell.Info, text string) tool.Result {
	for _, x := range w.runs {
		text += "\n" + x.ID + " (" + x.Type() + ")"
		if x.Title() != "" {
			text += ": " + wording.LineOf(x.Title(), 100)
		}
	}
	return tool.Result{
		Text: text + "\nRead its report with job_output, stop it with job_stop. Its end is told with a later result.",
		Meta: tool.Meta{Job: running.JobMeta(i)},
	}
}

// wait waits for the job, and tells the client how far it is.
func (w *work) wait(ctx context.Context, job *shell.Job) (shell.Info, error) {
	until := running.AnswerBy(w.env, w.began)
	if w.stays {
		until = time.Time{}
	}
	for {
		step := time.Now().Add(beat)
		last := !until.IsZero() && !step.Before(until)
		if last {
			step = until
		}
		info, err := job.Wait(ctx, step)
		if err != nil || last || info.State != shell.Running {
			return info, err
		}
		w.tell()
	}
}

// tell tells the client how far the sub-agents are.
func (w *work) tell() {
	if !w.watched.Load() {
		return
	}
	var all agent.Status
	for _, x := range w.runs {
		s := x.Status()
		all.Calls += s.Calls
		all.Tokens += s.Tokens
		all.Rough = all.Rough || s.Rough
		all.Doing = cmp.Or(s.Doing, all.Doing)
	}
	ran := time.Since(w.began)
	text := "agent: " + wording.Plural(all.Calls, "tool call", "tool calls")
	if all.Tokens > 0 {
		text += ", " + countTokens(all.Tokens, all.Rough)
	}
	if all.Doing != "" {
		text += ", " + all.Doing
	}
	w.env.Progress(ran.Round(time.Second).Seconds(), 0, text+", "+wording.Whole(ran))
}

// tellEnd tells the client that one of the sub-agents has ended, and what it took.
func (w *work) tellEnd(x *agent.Run, o agent.Outcome) {
	if !w.watched.Load() {
		return
	}
	how := "complete"
	if o.Stopped != loop.Done {
		how = "ended (" + o.Stopped + ")"
	}
	w.env.Progress(time.Since(w.began).Round(time.Second).Seconds(), 0,
		"sub-agent "+how+": "+strings.Trim(footer(x, o), "[]"))
}

// work is the job: the sub-agents work side by side, and their reports are its output.
func (w *work) work(ctx context.Context, out io.Writer) error {
	ends := make([]agent.Outcome, len(w.runs))
	var all sync.WaitGroup
	for i, x := range w.runs {
		all.Go(func() {
			defer func() { w.tellEnd(x, ends[i]) }()
			defer func() {
				if p := recover(); p != nil { // a recover of the job does not reach here
					ends[i] = agent.Outcome{Stopped: loop.Failed, Detail: "internal error"}
					_, _ = fmt.Fprintf(out, "panic: %s\n%s\n", wording.LineOf(fmt.Sprint(p), 300), debug.Stack())
				}
			}()
			ends[i] = x.Do(ctx, func(line string) {
				if len(w.runs) > 1 {
					line = x.ID + ": " + line
				}
				_, _ = fmt.Fprintln(out, line) // a full disk is told at the end
				w.tell()
			})
		})
	}
	all.Wait()
	w.result = w.report(ends, w.trees.settle(ctx, w.env))
	_, _ = fmt.Fprintln(out, "\n"+w.result.Text)
	if w.result.Failed != "" {
		return errors.New(string(w.result.Failed))
	}
	return nil
}

// report is the answer about sub-agents that have ended. left says of each what it left in its work tree; nil: none has
// one.
func (w *work) report(ends []agent.Outcome, left []string) tool.Result {
	if len(ends) == 1 {
		code, text := ended(w.runs[0], ends[0])
		if len(left) > 0 {
			text += "\n" + left[0]
		}
		return tool.Result{Text: text, Failed: code}
	}
	var parts []string
	failed := 0
	var first tool.Code
	for i, x := range w.runs {
		code, text := ended(x, ends[i])
		if len(left) > 0 {
			text += "\n" + left[i]
		}
		how := "done"
		if code != "" {
			how, failed, first = "failed", failed+1, cmp.Or(first, code)
		}
		name := cmp.Or(wording.LineOf(x.Title(), 100), x.Type())
		parts = append(parts, fmt.Sprintf("Part %d of %d, %s: %s\n%s", i+1, len(ends), name, how, text))
	}
	r := tool.Result{Text: strings.Join(parts, "\n\n")}
	if failed == len(ends) {
		r.Failed = first
	}
	return r
}

// ended says how one sub-agent ended; code "": it has finished.
func ended(x *agent.Run, o agent.Outcome) (code tool.Code, text string) {
	why := ""
	const limits = "The limit is the operator's."
	switch o.Stopped {
	case loop.Done:
	case loop.Failed:
		code, why = tool.AgentFailed, wording.LineOf(secrets.Masked(o.Detail), 400)
	case loop.Stalled:
		code, why = tool.AgentStalled, "nothing happened for 10 minutes"
	case loop.Cancelled:
		code, why = tool.AgentStopped, "it was stopped"
	case loop.NoTurns:
		n, origin := x.Turns()
		code, why = tool.AgentStopped, fmt.Sprintf("it used all of its %d turns (%s)", n, wording.LineOf(origin, 300))
	case loop.NoTokens:
		code, why = tool.AgentStopped, "it used all of its tokens (agent.max_tokens). "+limits
	case loop.NoTime:
		code, why = tool.AgentStopped, "it used all of its time (agent.max_time). "+limits
	case loop.NoRoom:
		code, why = tool.AgentStopped, "the context of its model is full. Give it a smaller task."
	case loop.Cut:
		code, why = tool.AgentStopped, "its last answer was cut at the size of one turn (agent.turn_tokens)"
	case loop.Refused:
		code, why = tool.AgentStopped, "its model declined to go on"
	default:
		code, why = tool.AgentStopped, o.Stopped
	}
	said := agent.Scan(secrets.Masked(o.Text))
	switch {
	case code != "" && said != "":
		text = string(code) + ": " + strings.TrimSuffix(why, ".") + ". Its last text:\n" + said
	case code != "":
		text = string(code) + ": " + strings.TrimSuffix(why, ".") + "."
	default:
		text = cmp.Or(said, "(the sub-agent wrote no report)")
	}
	if o.Unkept > 0 {
		text += "\n[the first " + results.Count(int(o.Unkept)) + " bytes of what it printed are not kept]"
	}
	return code, text + "\n" + footer(x, o)
}

// footer names the sub-agent and what it took.
func footer(x *agent.Run, o agent.Outcome) string {
	parts := []string{"agent " + x.ID, wording.LineOf(x.Type(), 64)}
	if x.Backend() != agent.Program {
		calls := wording.Plural(o.Calls, "tool call", "tool calls")
		if o.Used != "" {
			calls += " (" + o.Used + ")"
		}
		parts = append(parts, calls, countTokens(o.Tokens, o.Rough))
	}
	return "[" + strings.Join(append(parts, wording.Whole(o.Took)), " · ") + "]"
}

// countTokens says how many tokens there were. rough: they are estimated.
func countTokens(n int, rough bool) string {
	text := results.Count(n) + " tokens"
	if rough {
		return "about " + text
	}
	return text
}

// Send gives a message to a sub-agent of the session. One that has ended goes on, and the result is its report.
func Send(ctx context.Context, env tool.Env, runner *agent.Runner, to, message string) (tool.Result, error) {
	d := Delegation{Env: env, Runner: runner}
	if runner == nil {
		return tool.Result{}, unknownAgent(nil, to)
	}
	if err := d.possible(runner.InForce(env.Samples)); err != nil {
		return tool.Result{}, err
	}
	parent := parentOf(env)
	x, delivered, err := runner.Send(parent, strings.TrimSpace(to), message, env.Hands)
	switch {
	case errors.Is(err, agent.ErrUnknown):
		return tool.Result{}, unknownAgent(runner.Names(parent), to)
	case errors.Is(err, agent.ErrFull):
		return tool.Result{}, tool.Refuse(tool.Busy, "%s has not read the messages before. Nothing was sent. Try "+
			"again later.", wording.LineOf(to, 60))
	case errors.Is(err, agent.ErrNoReply):
		return tool.Result{}, tool.Refuse(tool.ToolDisabled, "send_message is not available: %s runs in the command "+
			"line of another agent, which takes no messages now.", wording.LineOf(to, 60))
	case err != nil:
		return tool.Result{}, d.limit(err)
	case delivered:
		return tool.Result{Text: "Delivered."}, nil
	}
	left, err := treesOf(ctx, env, x)
	if err != nil {
		x.Drop()
		return tool.Result{}, err
	}
	if err := begin(ctx, []*agent.Run{x}); err != nil {
		return tool.Result{}, err
	}
	w := work{env: env, runs: []*agent.Run{x}, trees: left, stays: !d.readable() || x.Backend() == agent.Sampling}
	return w.do(ctx)
}

func unknownAgent(names []string, to string) error {
	list := "There are none: start one with agent."
	if len(names) > 0 {
		list = "Known: " + strings.Join(names, ", ") + "."
	}
	return tool.Refuse(tool.AgentUnknown, "No sub-agent %s of this session runs or can go on: those that have "+
		"ended are forgotten after 30 minutes, and with their server. %s", wording.LineOf(to, 80), list)
}
