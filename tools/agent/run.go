package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/tools/agent/loop"
	"codehand/tools/results"
)

// A Run is one sub-agent. It is safe for concurrent use.
type Run struct {
	ID     string
	Apart  Apart // the work tree to which it is narrowed
	order  Order
	runner *Runner
	group  *group
	inbox  chan string
	placed bool // it has a place among those of its principal; of the goroutine of Do

	mu      sync.Mutex
	child   Child // nil: it has none now
	last    Child // as child, also when it is closed
	alone   bool
	running bool
	begun   bool // Do was called
	ended   time.Time
	hooks   announcement
	talk
}

// An announcement is what a Run has of hooks that were told that it starts. It is safe for concurrent use.
type announcement struct {
	mu    sync.Mutex
	added string           // to its instructions
	ended func(how string) // nil: they were told nothing, or that it has ended
}

// A talk is what was said so far. The Run's mu covers it.
type talk struct {
	history []loop.Message
	size    int // bytes of history
	tokens  int
	rough   bool // tokens are estimated, in part
	calls   int
	prompt  string // of a run that goes on; "": that of its order
	early   string // what came too late for the last run
	doing   string // the last tool
	used    map[string]int
	answers int // of the client's model within one call; 0: there is no such limit
}

// A Status is how far a sub-agent is.
type Status struct {
	Calls  int
	Tokens int // 0: none are counted yet, or they never are
	Rough  bool
	Doing  string // the last tool; "": none yet
}

// An Outcome is how a run ended.
type Outcome struct {
	Text    string // the last text of the sub-agent, as it is
	Unkept  int64  // bytes that a program printed before Text
	Stopped string // one of loop's constants; loop.Done: it has finished
	Detail  string // of loop.Failed: why; for a person
	Calls   int
	Used    string // the tools that it called, most used first, with how often: grep_search 9, read_file 5
	Tokens  int    // 0: not counted
	Rough   bool
	Took    time.Duration
}

// Type is the name of its type.
func (x *Run) Type() string { return x.order.Type.Name }

// Title is what its task is called.
func (x *Run) Title() string { return x.order.Title }

// Backend is who executes it.
func (x *Run) Backend() Backend { return x.order.Backend }

// Turns is how many turns a run of it has, and where that is said: a setting, or the file of its type.
func (x *Run) Turns() (n int, origin string) {
	n, origin = x.runner.Limits.Turns, "agent.max_turns"
	if t := x.order.Type; t.MaxTurns > 0 && t.MaxTurns < n {
		n, origin = t.MaxTurns, "maxTurns in "+t.File
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.answers > 0 && x.answers < n {
		n, origin = x.answers, "as often as this client answers within one call; send_message lets it go on"
	}
	return n, origin
}

// Status says how far it is.
func (x *Run) Status() Status {
	x.mu.Lock()
	defer x.mu.Unlock()
	return Status{Calls: x.calls, Tokens: x.tokens, Rough: x.rough, Doing: x.doing}
}

// Alone says that the call which started it is over, so that no client is there to be asked.
func (x *Run) Alone() {
	x.mu.Lock()
	child := x.child
	x.alone = true
	x.mu.Unlock()
	if child != nil {
		child.Alone()
	}
}

// Begin tells the operator's hooks that the sub-agent is about to start, or to go on. Do or Drop must follow. The error
// says why it must not start.
func (x *Run) Begin(ctx context.Context) error {
	x.mu.Lock()
	hands := x.order.Hands
	x.mu.Unlock()
	added, ended, err := hands.Begin(ctx, x.ID, x.Type())
	x.hooks.mu.Lock()
	defer x.hooks.mu.Unlock()
	x.hooks.added, x.hooks.ended = added, ended
	return err
}

// end tells the hooks that the sub-agent has ended, if they know that it began.
func (a *announcement) end(how string) {
	a.mu.Lock()
	ended := a.ended
	a.ended = nil
	a.mu.Unlock()
	if ended != nil {
		ended(how)
	}
}

// instructions are the text of its type, and what hooks added to it.
func (a *announcement) instructions(text string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.added == "" {
		return text
	}
	return strings.TrimSpace(text + "\n\n" + a.added)
}

// Drop takes back a Start, or the Send that was to make it go on: nothing has run, and nothing of it counts.
func (x *Run) Drop() {
	x.hooks.end(loop.Cancelled)
	x.mu.Lock()
	begun, now := x.begun, x.runner.Now()
	x.running, x.prompt, x.ended = false, "", now
	if !begun {
		x.ended = now.Add(-24 * time.Hour)
	}
	x.mu.Unlock()
	x.runner.mu.Lock()
	defer x.runner.mu.Unlock()
	x.group.waiting--
	if n := len(x.group.started); !begun && n > 0 {
		x.group.started = x.group.started[:n-1]
	}
}

// Do executes the sub-agent: it waits for its turn among those of its principal, and returns when it has ended. said is
// told each step in a line; it may be nil.
func (x *Run) Do(ctx context.Context, said func(line string)) Outcome {
	if said == nil {
		said = func(string) {}
	}
	began := time.Now()
	how, settled := loop.Failed, false // of a panic
	defer func() {
		if !settled {
			x.settle(Outcome{Stopped: how})
		}
		x.hooks.end(how)
	}()
	x.mu.Lock()
	x.begun = true
	x.mu.Unlock()
	defer x.leaveQueue()
	out := Outcome{Stopped: loop.Cancelled}
	if x.enter(ctx, said) {
		defer x.leave()
		out = x.do(ctx, said)
	}
	for !x.settle(out) {
		out = x.do(ctx, said)
	}
	out.Took, how, settled = time.Since(began), out.Stopped, true
	return out
}

// enter waits for a place among those of its principal. It returns false if ctx ends before.
func (x *Run) enter(ctx context.Context, said func(string)) bool {
	select {
	case x.group.slots <- struct{}{}:
		x.placed = true
		return true
	default:
	}
	said("waiting for other sub-agents to end")
	select {
	case x.group.slots <- struct{}{}:
		x.placed = true
	case <-ctx.Done():
	}
	return x.placed
}

// leave gives its place back, if it has one.
func (x *Run) leave() {
	if x.placed {
		x.placed = false
		<-x.group.slots
	}
}

// calling is how it makes its calls. While it waits for a sub-agent of its own, that one has its place. Else waiting
// sub-agents could hold all places, and none could go on.
func (x *Run) calling(child Child) func(context.Context, loop.Call) loop.Result {
	return func(ctx context.Context, c loop.Call) loop.Result {
		if !x.runner.starts(c.Name) {
			return child.Do(ctx, c)
		}
		x.leave()
		r := child.Do(ctx, c)
		x.enter(ctx, func(string) {})
		return r
	}
}

// starts says whether a tool starts sub-agents. None of those is a reader, so their calls run alone.
func (r *Runner) starts(name string) bool {
	return slices.ContainsFunc(r.tools(), func(x Offered) bool { return x.Name == name && x.For == StartingAgents })
}

// settle ends the run, unless a message has come since its last turn. Its session is closed by now: from then on a
// message begins another run, which opens it again.
func (x *Run) settle(out Outcome) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if out.Stopped == loop.Done && len(x.inbox) > 0 {
		return false
	}
	x.running, x.ended = false, x.runner.Now()
	return true
}

// do executes it once, in a session that is open meanwhile.
func (x *Run) do(ctx context.Context, said func(string)) Outcome {
	defer x.close()
	if err := x.open(ctx); err != nil {
		return failed(ctx, err)
	}
	if x.order.Backend == Program {
		return x.runProgram(ctx, said)
	}
	for {
		out := x.runLoop(ctx, said)
		if out.Stopped != loop.Done || len(x.inbox) == 0 { // a message came after its last turn
			return out
		}
	}
}

func failed(ctx context.Context, err error) Outcome {
	if ctx.Err() != nil {
		return Outcome{Stopped: loop.Cancelled}
	}
	return Outcome{Stopped: loop.Failed, Detail: err.Error()}
}

func (x *Run) leaveQueue() {
	x.runner.mu.Lock()
	defer x.runner.mu.Unlock()
	x.group.waiting--
}

// open opens its session.
func (x *Run) open(ctx context.Context) error {
	o := x.order
	if o.Backend == Program {
		return nil // it comes with a server of its own
	}
	names := make([]string, len(o.Tools))
	for i, t := range o.Tools {
		names[i] = t.Name
	}
	x.mu.Lock()
	again := x.last != nil
	x.mu.Unlock()
	mode, narrows := o.Type.limit()
	child, err := o.Hands.Open(ctx, Opening{ID: x.ID, Type: x.Type(), Depth: o.Parent.Depth + 1, Tools: names,
		Mode: mode, Narrows: narrows, Again: again, Apart: o.Apart})
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.child, x.last = child, child
	if x.alone {
		child.Alone()
	}
	return nil
}

// close closes its session. That may take as long as jobs in it take to end.
func (x *Run) close() {
	x.mu.Lock()
	child := x.child
	x.child = nil
	x.mu.Unlock()
	if child != nil {
		child.Close()
	}
}

// runLoop executes it with a model of ours or of the client.
func (x *Run) runLoop(ctx context.Context, said func(string)) Outcome {
	o, l := x.order, x.runner.Limits
	model, most := x.runner.Model, 0
	if o.Backend == Sampling {
		model, most = o.Hands.Sampler()
	} else if o.Model != "" && x.runner.Pick != nil {
		model = x.runner.Pick(o.Model)
	}
	if model == nil {
		return Outcome{Stopped: loop.Failed, Detail: "there is no model any more"}
	}
	x.mu.Lock()
	x.answers = most
	x.mu.Unlock()
	turns, _ := x.Turns()
	x.mu.Lock()
	child, history, prompt := x.child, x.history, x.said()
	switch {
	case history == nil && prompt == "":
		prompt = o.Prompt
	case history == nil: // it was stopped before it had begun
		prompt = o.Prompt + "\n\n" + prompt
	}
	calls, tokens := x.calls, x.tokens
	x.mu.Unlock()
	out, err := loop.Run(ctx, loop.Task{
		Model: model, System: system(x.hooks.instructions(o.System), o.Type, o.Parent.Place),
		Prompt: prompt, History: history,
		Tools: o.Tools, MaxOutput: l.MaxOutput, Effort: o.Effort, Do: x.calling(child), Inbox: x.inbox,
		Budget: loop.Budget{Turns: turns, Tokens: l.Tokens, Time: l.Time},
		Step: func(s loop.Step) {
			if s.Kind != loop.StepCall {
				return
			}
			x.mu.Lock()
			x.calls, x.doing = calls+s.Calls, results.Line(results.Clean(s.Tool), 64) // a model may call anything
			x.tokens, x.rough = tokens+s.Tokens.Total(), x.rough || s.Tokens.Estimated
			if x.used == nil {
				x.used = map[string]int{}
			}
			if x.used[x.doing] > 0 || len(x.used) < maxUsed {
				x.used[x.doing]++
			}
			line := countCalls(x.calls) + ", " + x.doing
			x.mu.Unlock()
			said(line)
		},
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	x.history, x.size, x.calls = out.Messages, weight(out.Messages), calls+out.Calls
	x.tokens, x.rough = tokens+out.Tokens.Total(), x.rough || out.Tokens.Estimated
	end := Outcome{Text: out.Text, Stopped: out.Stopped, Calls: x.calls, Used: mostUsed(x.used), Tokens: x.tokens,
		Rough: x.rough}
	if err != nil && out.Stopped == loop.Failed {
		end.Detail = err.Error()
		if known, ok := errors.AsType[*loop.Error](err); ok {
			end.Detail = known.Text
		}
	}
	return end
}

// said takes the messages with which it goes on, in the order in which they came; "": there are none. The caller holds
// mu.
func (x *Run) said() string {
	text := strings.TrimSpace(x.early + "\n\n" + x.prompt)
	x.early, x.prompt = "", ""
	return text
}

// maxUsed is how many tools of a sub-agent are counted by name: a model may make names up.
const maxUsed = 50

// mostUsed names the tools that were used most, at most five, with how often.
func mostUsed(used map[string]int) string {
	names := slices.SortedFunc(maps.Keys(used), func(a, b string) int {
		return cmp.Or(cmp.Compare(used[b], used[a]), strings.Compare(a, b))
	})
	var list []string
	for _, name := range names[:min(len(names), 5)] {
		list = append(list, fmt.Sprintf("%s %d", name, used[name]))
	}
	return strings.Join(list, ", ")
}

// countCalls says how many tool calls there were.
func countCalls(n int) string {
	if n == 1 {
		return "1 tool call"
	}
	return fmt.Sprintf("%d tool calls", n)
}

func (x *Run) isOver() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.running
}

// weighs is how many bytes a run keeps of what was said.
func (x *Run) weighs() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.size
}

// weight is how many bytes messages hold, about.
func weight(messages []loop.Message) (n int) {
	for _, m := range messages {
		for _, p := range m.Parts {
			n += len(p.Text) + len(p.Opaque)
			if p.Call != nil {
				n += len(p.Call.Arguments)
			}
			if p.Result == nil {
				continue
			}
			n += len(p.Result.Text)
			for _, i := range p.Result.Images {
				n += len(i.Data)
			}
		}
	}
	return n
}

func (x *Run) endedAt() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ended
}

// send is Runner.Send for one that is known.
func (x *Run) send(message string, hands Hands) (*Run, bool, error) {
	x.runner.mu.Lock()
	defer x.runner.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.running {
		select {
		case x.inbox <- message:
			return x, true, nil
		default:
			return nil, false, ErrFull
		}
	}
	if x.group.waiting >= x.runner.Parallel+x.runner.Queue {
		return nil, false, ErrQueue
	}
	for len(x.inbox) > 0 { // no other goroutine receives now
		x.early = strings.TrimSpace(x.early + "\n\n" + <-x.inbox)
	}
	x.running, x.alone, x.prompt, x.order.Hands = true, false, message, hands
	x.group.waiting++
	return x, false, nil
}

// forget drops what its session remembers.
func (x *Run) forget() {
	x.mu.Lock()
	last := x.last
	x.history, x.size, x.last = nil, 0, nil
	x.mu.Unlock()
	if last != nil {
		last.Forget()
	}
}
