package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// maxResult is how many bytes of a result a model is sent at most, if Task.Do shortened it less.
const maxResult = 256 << 10

var (
	errTime    = errors.New("the time of the run is over")
	errStalled = errors.New("nothing happened for too long")
)

// A run is one Run while it goes on.
type run struct {
	task  Task
	tools map[string]Tool
	out   Outcome
	stall *time.Timer

	reporting sync.Mutex // guards the order of steps, and out.Calls
}

// Run does a task. It returns when the model has finished, a budget is used up, the model fails or ctx ends, and then
// no goroutine of it is left. A budget that is used up is no error: Outcome.Stopped tells.
func Run(ctx context.Context, t Task) (Outcome, error) {
	r := &run{task: t, tools: make(map[string]Tool, len(t.Tools))}
	for _, tool := range t.Tools {
		r.tools[tool.Name] = tool
	}
	r.out.Messages = slices.Clone(t.History)
	r.hear(t.Prompt)

	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.stall = time.AfterFunc(r.patience(), func() { cancel(errStalled) })
	defer r.stall.Stop()
	if t.Budget.Time > 0 {
		limit := time.AfterFunc(t.Budget.Time, func() { cancel(errTime) })
		defer limit.Stop()
	}
	var err error
	for r.out.Stopped == "" && err == nil {
		err = r.turn(inner)
	}
	r.close()
	return r.end(ctx, inner, err)
}

// end says why the run stopped, if it does not know yet.
func (r *run) end(ctx, inner context.Context, err error) (Outcome, error) {
	var failure *Error
	switch {
	case err == nil:
		return r.out, nil
	case ctx.Err() != nil:
		r.out.Stopped = Cancelled
		return r.out, context.Cause(ctx)
	case errors.Is(context.Cause(inner), errTime):
		r.out.Stopped = NoTime
	case errors.Is(context.Cause(inner), errStalled):
		r.out.Stopped = Stalled
	case errors.As(err, &failure) && failure.Kind == Full:
		r.out.Stopped = NoRoom
	case errors.As(err, &failure) && failure.Kind == Spent:
		r.out.Stopped = NoTurns
	default:
		r.out.Stopped = Failed
		return r.out, err
	}
	return r.out, nil
}

// turn asks the model once and does what it calls.
func (r *run) turn(ctx context.Context) error {
	r.drain()
	if r.out.Stopped = r.exhausted(); r.out.Stopped != "" {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	last := r.task.Budget.Turns > 1 && r.out.Turns == r.task.Budget.Turns-1
	if last {
		r.hear("[This is your last turn: tool calls are no longer run. Answer now with what you have.]")
	}
	r.report(Step{Kind: StepTurn})
	answer, err := r.task.Model.Turn(ctx, Turn{
		System: r.task.System, Tools: r.task.Tools, Messages: slices.Clone(r.out.Messages),
		MaxOutput: r.task.MaxOutput, Effort: r.task.Effort,
	}, func(text string) { r.report(Step{Kind: StepText, Text: text}) })
	if err != nil {
		return err
	}
	r.out.Turns++
	r.out.Tokens = r.out.Tokens.add(answer.Tokens)
	calls := r.note(answer)
	switch {
	case len(calls) > 0:
		if r.out.Stopped = r.exhausted(); r.out.Stopped == "" {
			r.say(r.results(ctx, calls, answer.Stop)...)
		}
		return ctx.Err()
	case answer.Stop == StopPause:
	case answer.Stop == StopLength:
		r.out.Stopped = Cut
	case answer.Stop == StopFull:
		r.out.Stopped = NoRoom
	case answer.Stop == StopRefuse:
		r.out.Stopped = Refused
	case !r.drain():
		r.out.Stopped = Done
	}
	return nil
}

// note keeps an answer and returns its calls.
func (r *run) note(answer Answer) []Call {
	var calls []Call
	var texts []string
	for _, p := range answer.Parts {
		switch {
		case p.Call != nil:
			calls = append(calls, *p.Call)
		case strings.TrimSpace(p.Text) != "":
			texts = append(texts, p.Text)
		}
	}
	if len(texts) > 0 {
		r.out.Text = strings.Join(texts, "\n\n")
	}
	if len(answer.Parts) > 0 {
		r.out.Messages = append(r.out.Messages, Message{Role: RoleAssistant, Parts: answer.Parts})
	}
	return calls
}

// exhausted names the budget that is used up; "": none.
func (r *run) exhausted() string {
	switch b := r.task.Budget; {
	case r.out.Turns >= b.Turns:
		return NoTurns
	case r.out.Tokens.spent() >= b.Tokens:
		return NoTokens
	case b.Time <= 0:
		return NoTime
	}
	return ""
}

// drain takes what is in the inbox into the conversation and says whether there was anything.
func (r *run) drain() (heard bool) {
	for {
		select {
		case text, open := <-r.task.Inbox:
			if !open {
				r.task.Inbox = nil
				return heard
			}
			r.hear(text)
			heard = true
		default:
			return heard
		}
	}
}

// hear adds a text of the user.
func (r *run) hear(text string) {
	if text != "" {
		r.say(Part{Text: text})
	}
}

// say adds parts of the user: to the last message if that is the user's, because sides alternate.
func (r *run) say(parts ...Part) {
	if n := len(r.out.Messages); n > 0 && r.out.Messages[n-1].Role == RoleUser {
		// The parts may be shared with History or a Turn, so they are not appended to in place.
		r.out.Messages[n-1].Parts = slices.Concat(r.out.Messages[n-1].Parts, parts)
		return
	}
	r.out.Messages = append(r.out.Messages, Message{Role: RoleUser, Parts: parts})
}

// close gives calls without a result one, so that the conversation can go on later.
func (r *run) close() {
	n := len(r.out.Messages)
	if n == 0 || r.out.Messages[n-1].Role != RoleAssistant {
		return
	}
	for _, p := range r.out.Messages[n-1].Parts {
		if p.Call != nil {
			text := "Not run: the run had ended (" + r.out.Stopped + ")."
			r.say(Part{Result: &Result{CallID: p.Call.ID, IsError: true, Text: text}})
		}
	}
}

// results does calls: those that only read side by side, the others alone and in order.
func (r *run) results(ctx context.Context, calls []Call, stop string) []Part {
	parts := make([]Part, len(calls))
	slots := make(chan struct{}, max(1, cmp.Or(r.task.Budget.Parallel, 4)))
	var reading sync.WaitGroup
	for i, c := range calls {
		cut := stop == StopLength && i == len(calls)-1
		if !r.tools[c.Name].ReadOnly {
			reading.Wait()
			parts[i].Result = r.call(ctx, c, cut)
			continue
		}
		slots <- struct{}{}
		reading.Go(func() {
			parts[i].Result = r.call(ctx, c, cut)
			<-slots
		})
	}
	reading.Wait()
	return parts
}

// call does one call, or says why it cannot be done. cut: the answer was cut behind it.
func (r *run) call(ctx context.Context, c Call, cut bool) *Result {
	r.report(Step{Kind: StepCall, Tool: c.Name})
	var result Result
	switch _, known := r.tools[c.Name]; {
	case ctx.Err() != nil:
		result = Result{IsError: true, Text: "Not run: the run was ended."}
	case !known:
		result = Result{IsError: true, Text: r.unknown(c.Name)}
	case c.Broken != "" && cut:
		result = Result{IsError: true, Text: "INPUT_INVALID: the arguments are incomplete, because your answer " +
			"reached the limit of its length. Make the call again with less in it, for example in several parts."}
	case c.Broken != "":
		result = Result{IsError: true, Text: "INPUT_INVALID: " + c.Broken +
			". Make the call again with arguments that are one JSON object."}
	default:
		result = r.task.Do(ctx, c)
	}
	result.CallID = c.ID
	result.Text = shorten(result.Text)
	r.report(Step{Kind: StepResult, Tool: c.Name, Error: result.IsError})
	return &result
}

// unknown is what a model reads that called a tool that there is not.
func (r *run) unknown(name string) string {
	names := make([]string, len(r.task.Tools))
	for i, t := range r.task.Tools {
		names[i] = t.Name
	}
	return fmt.Sprintf("TOOL_UNKNOWN: there is no tool %.80q. Tools: %s.", name, strings.Join(names, ", "))
}

// report tells of a step, and that the run is alive.
func (r *run) report(s Step) {
	r.reporting.Lock()
	defer r.reporting.Unlock()
	r.stall.Reset(r.patience())
	if s.Kind == StepCall {
		r.out.Calls++
	}
	if r.task.Step != nil {
		s.Turns, s.Calls, s.Tokens = r.out.Turns, r.out.Calls, r.out.Tokens
		r.task.Step(s)
	}
}

// patience is how long nothing may happen.
func (r *run) patience() time.Duration { return cmp.Or(r.task.Budget.Stall, 10*time.Minute) }

// shorten cuts a text that is too long for any model, between characters.
func shorten(text string) string {
	if len(text) <= maxResult {
		return text
	}
	end := maxResult
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s\n[%d more bytes are left out]", text[:end], len(text)-end)
}
