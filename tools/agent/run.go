package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"codehand/tools/agent/loop"
)

// A Run is one sub-agent. It is safe for concurrent use.
type Run struct {
	ID     string
	order  Order
	runner *Runner
	group  *group
	inbox  chan string

	mu      sync.Mutex
	child   Child // nil: it has none now
	last    Child // as child, also when it is closed
	alone   bool
	running bool
	ending  bool // it reads no message any more, but runs yet
	ended   time.Time
	talk
}

// A talk is what was said so far. The Run's mu covers it.
type talk struct {
	history []loop.Message
	size    int // bytes of history
	tokens  int
	calls   int
	prompt  string // of a run that goes on; "": that of its order
	doing   string // the last tool
}

// A Status is how far a sub-agent is.
type Status struct {
	Calls int
	Doing string // the last tool; "": none yet
}

// An Outcome is how a run ended.
type Outcome struct {
	Text    string // the last text of the sub-agent, as it is
	Unkept  int64  // bytes that a program printed before Text
	Stopped string // one of loop's constants; loop.Done: it has finished
	Detail  string // of loop.Failed: why; for a person
	Calls   int
	Tokens  int // 0: nobody counted
	Rough   bool
	Took    time.Duration
}

// Type is the name of its type.
func (x *Run) Type() string { return x.order.Type.Name }

// Title is what its task is called.
func (x *Run) Title() string { return x.order.Title }

// Backend is who executes it.
func (x *Run) Backend() Backend { return x.order.Backend }

// Status says how far it is.
func (x *Run) Status() Status {
	x.mu.Lock()
	defer x.mu.Unlock()
	return Status{Calls: x.calls, Doing: x.doing}
}

// Alone says that the call which started it is over, so that nobody can be asked.
func (x *Run) Alone() {
	x.mu.Lock()
	child := x.child
	x.alone = true
	x.mu.Unlock()
	if child != nil {
		child.Alone()
	}
}

// Drop takes back a Start, or the Send after which it was to go on: nothing has run.
func (x *Run) Drop() {
	x.leaveQueue()
	x.mu.Lock()
	x.running, x.prompt = false, ""
	if x.ended.IsZero() {
		x.ended = x.runner.Now().Add(-24 * time.Hour) // nobody goes on with it
	}
	x.mu.Unlock()
}

// Do executes the sub-agent: it waits for its turn among those of its principal, and returns when it has ended. said is
// told each step in a line; it may be nil.
func (x *Run) Do(ctx context.Context, said func(line string)) Outcome {
	if said == nil {
		said = func(string) {}
	}
	began := time.Now()
	defer x.end() // also of a panic
	out := x.do(ctx, said)
	out.Took = time.Since(began)
	return out
}

// end closes its session. Until that is done it counts as running, or it could be gone on with in a session that ends.
func (x *Run) end() {
	x.mu.Lock()
	child := x.child
	x.child, x.ending = nil, true
	x.mu.Unlock()
	if child != nil {
		child.Close()
	}
	x.mu.Lock()
	x.running, x.ending, x.ended = false, false, x.runner.Now()
	x.mu.Unlock()
}

func (x *Run) do(ctx context.Context, said func(string)) Outcome {
	select {
	case x.group.slots <- struct{}{}:
	default:
		said("waiting for other sub-agents to end")
		select {
		case x.group.slots <- struct{}{}:
		case <-ctx.Done():
			x.leaveQueue()
			return Outcome{Stopped: loop.Cancelled}
		}
	}
	defer func() { <-x.group.slots; x.leaveQueue() }()
	if err := x.open(ctx); err != nil {
		return failed(ctx, err)
	}
	if x.order.Backend == Program {
		return x.runProgram(ctx, said)
	}
	for {
		out := x.runLoop(ctx, said)
		x.mu.Lock()
		x.ending = out.Stopped != loop.Done || len(x.inbox) == 0 // else a message came after its last turn
		over := x.ending
		x.mu.Unlock()
		if over {
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
	child, err := o.Hands.Open(ctx, Opening{ID: x.ID, Depth: o.Parent.Depth + 1, Tools: names, Mode: mode,
		Narrows: narrows, Again: again})
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

// runLoop executes it with a model of ours or of the client.
func (x *Run) runLoop(ctx context.Context, said func(string)) Outcome {
	o, l := x.order, x.runner.Limits
	model := x.runner.Model
	if o.Backend == Sampling {
		model = o.Hands.Sampler()
	} else if o.Model != "" && x.runner.Pick != nil {
		model = x.runner.Pick(o.Model)
	}
	if model == nil {
		return Outcome{Stopped: loop.Failed, Detail: "there is no model any more"}
	}
	turns := l.Turns
	if n := o.Type.MaxTurns; n > 0 {
		turns = min(turns, n)
	}
	x.mu.Lock()
	child, history, prompt := x.child, x.history, x.prompt
	if history == nil && prompt == "" {
		prompt = o.Prompt
	}
	x.prompt = ""
	calls := x.calls
	x.mu.Unlock()
	out, err := loop.Run(ctx, loop.Task{
		Model: model, System: system(o.System, o.Type, o.Parent.Place), Prompt: prompt, History: history,
		Tools: o.Tools, MaxOutput: l.MaxOutput, Effort: o.Effort, Do: child.Do, Inbox: x.inbox,
		Budget: loop.Budget{Turns: turns, Tokens: l.Tokens, Time: l.Time},
		Step: func(s loop.Step) {
			if s.Kind != loop.StepCall {
				return
			}
			x.mu.Lock()
			x.calls, x.doing = calls+s.Calls, s.Tool
			line := countCalls(x.calls) + ", " + s.Tool
			x.mu.Unlock()
			said(line)
		},
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	x.history, x.size, x.calls = out.Messages, weight(out.Messages), calls+out.Calls
	x.tokens += out.Tokens.Total()
	end := Outcome{Text: out.Text, Stopped: out.Stopped, Calls: x.calls, Tokens: x.tokens, Rough: out.Tokens.Estimated}
	if err != nil && out.Stopped == loop.Failed {
		end.Detail = err.Error()
		if known, ok := errors.AsType[*loop.Error](err); ok {
			end.Detail = known.Text
		}
	}
	return end
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

// send is Runner.Send for one that is known. The caller holds the Runner's mu.
func (x *Run) send(message string, hands Hands) (*Run, bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ending {
		return nil, false, ErrFull
	}
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
	x.group.waiting++
	// A message that came too late for the last turn is no lost one.
	for len(x.inbox) > 0 {
		message = <-x.inbox + "\n\n" + message
	}
	x.running, x.alone, x.prompt, x.order.Hands = true, false, message, hands
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
