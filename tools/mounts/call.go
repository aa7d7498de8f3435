package mounts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"codehand/tools/mounts/upstream"
	"codehand/tools/results"
	"codehand/tools/running"
	"codehand/tools/secrets"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// lastAnswer is how long a call whose time is over may take to say so by itself: a server that does not read may hold
// it up.
const lastAnswer = time.Second

// errTimeout is why the ctx of a call ends that took too long.
var errTimeout = errors.New("it took too long")

// runner is what runs a tool that its server calls own.
func (x *mount) runner(name, own string) runFunc {
	return func(ctx context.Context, env tool.Env, input json.RawMessage) (tool.Result, error) {
		if x.unaccepted(own) { // it changed after this call was bound
			return tool.Result{}, tool.Refuse(tool.DefinitionChanged, "Server %s has just changed %s. Nothing was "+
				"called. Call it again: a person must accept the change first.", x.Name, name)
		}
		c := call{mount: x, env: env, name: name, own: own, input: input}
		return c.run(ctx)
	}
}

// runLate starts the server, and runs the tool if it has one of this name.
func (x *mount) runLate(ctx context.Context, env tool.Env, name string, input json.RawMessage) (tool.Result, error) {
	done := wording.TellIfSlow(env, "starting the server "+x.Name)
	_, err := x.link(env.Key).get(ctx) // an attempt ends by itself
	done()
	if err != nil {
		return tool.Result{}, x.refusal(ctx, name, err)
	}
	return x.runNamed(ctx, env, name, input)
}

// unaccepted says whether a tool, by the server's name for it, changed and no person has accepted that.
func (x *mount) unaccepted(own string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, changed := x.changed[own]
	return changed
}

func (x *mount) now() []tool.Tool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tools
}

// A call is one call of a mounted tool.
type call struct {
	*mount
	env       tool.Env
	name, own string
	input     json.RawMessage

	caller   *caller
	watched  atomic.Bool  // the client still waits
	thinking atomic.Int32 // questions of the server that a person has
}

// An outcome is what became of a call.
type outcome struct {
	result tool.Result
	err    error
}

// run runs the call, as long as its client waits; then it goes on as a job.
func (c *call) run(ctx context.Context) (tool.Result, error) {
	began := time.Now()
	inner, limit, cancel := c.limited(context.WithoutCancel(ctx))
	c.caller = newCaller(c.env, limit)
	if put := c.caller.put; put != nil {
		c.caller.put = func(ctx context.Context, message string, schema json.RawMessage) (tool.Elicited, error) {
			if !c.watched.Load() {
				return tool.Elicited{}, errors.New("the client does not wait for this call any more")
			}
			c.thinking.Add(1)
			defer c.thinking.Add(-1)
			return put(ctx, message, schema)
		}
	}
	unlink := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	c.watched.Store(true)
	over := make(chan outcome, 1)
	go func() {
		defer cancel(nil)
		result, err := c.work(inner)
		over <- outcome{result, err}
	}()
	var late <-chan time.Time
	if until := running.AnswerBy(c.env, began); !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		late = timer.C
	}
	for waits := true; waits; {
		select {
		case o := <-over:
			return o.result, o.err
		case <-ctx.Done():
			c.watched.Store(false)
			cancel(context.Cause(ctx)) // the server is told to stop, and is not waited for
			return tool.Result{}, context.Cause(ctx)
		case <-inner.Done(): // its time is over, or it has just been answered
			select {
			case o := <-over:
				return o.result, o.err
			case <-time.After(lastAnswer):
				c.watched.Store(false)
				return tool.Result{}, c.refusal(inner, c.name, context.Cause(inner))
			}
		case <-late:
			if waits = c.thinking.Load() > 0; waits { // a person answers, so the client waits
				late = time.After(time.Second)
			}
		}
	}
	c.watched.Store(false)
	if !unlink() { // the client has just given up
		<-over
		return tool.Result{}, context.Cause(ctx)
	}
	return c.background(ctx, over, cancel, began)
}

// background makes a job of the call.
func (c *call) background(ctx context.Context, over <-chan outcome, cancel context.CancelCauseFunc, began time.Time) (
	tool.Result, error) {
	job, err := shell.Begin(ctx, c.env.Shell, shell.Command{Text: "tool " + c.name, Background: true},
		func(ctx context.Context, out io.Writer) error {
			var o outcome
			select {
			case o = <-over:
			case <-ctx.Done():
				cancel(context.Cause(ctx))
				o = <-over
			}
			if o.err != nil {
				_, _ = io.WriteString(out, o.err.Error()+"\n")
				return o.err
			}
			text := o.result.Text + "\n"
			for i, m := range o.result.Media { // a job has text alone
				text += c.kept(m.Data, fmt.Sprintf("image %d of the result", i+1), m.MIME) + "\n"
			}
			_, err := io.WriteString(out, text)
			if o.result.Failed != "" {
				return errors.New(string(o.result.Failed))
			}
			return err
		})
	if err != nil {
		cancel(nil)
		<-over
		return tool.Result{}, tool.Refuse(tool.Timeout, "%s did not answer within %s, and no job could be made of it. "+
			"What it did is unknown; check before you repeat it.", c.name, wording.Whole(time.Since(began)))
	}
	info := job.Info()
	return tool.Result{
		Text: fmt.Sprintf("Still running after %s; moved to the background as %s.\nRead its result with job_output, "+
			"stop it with job_stop. Its end is told with a later result.", wording.Whole(time.Since(began)), info.ID),
		Meta: tool.Meta{Job: running.JobMeta(info)},
	}, nil
}

// work calls the server. One that has forgotten the connection has not done the call, so it is called once more.
func (c *call) work(ctx context.Context) (tool.Result, error) {
	var a upstream.Answer
	err := c.with(ctx, c.env, c.caller, func(conn *upstream.Conn) (err error) {
		a, err = conn.Call(ctx, c.own, c.input, c.note)
		return err
	})
	if err != nil {
		return tool.Result{}, c.refusal(ctx, c.name, err)
	}
	if ctx.Err() != nil { // nobody waits for it any more
		return tool.Result{}, context.Cause(ctx)
	}
	return c.show(ctx, a)
}

// note passes on what the server says of its progress.
func (c *call) note(done, total float64, note string) {
	if c.watched.Load() {
		c.env.Progress(done, total, c.Name+": "+cmp.Or(results.Line(results.Clean(note), 200), "working"))
	}
}

// refusal puts what went wrong into words for the model. Words of the server stand between marks, or in quotes.
func (x *mount) refusal(ctx context.Context, name string, err error) error {
	down, isDown := errors.AsType[*downError](err)
	remote, isRemote := errors.AsType[*upstream.RemoteError](err)
	r := &tool.Refusal{Code: tool.UpstreamDown, Cause: err}
	switch {
	case errors.Is(err, errTimeout) || errors.Is(context.Cause(ctx), errTimeout):
		r.Code = tool.Timeout
		r.Text = fmt.Sprintf("%s did not answer in time, and its server was told to stop. What it did is unknown; "+
			"check before you repeat it.", name)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isRemote:
		r.Code = tool.UpstreamError
		r.Text = fmt.Sprintf("Server %s answered with an error", x.Name)
		if remote.Code != 0 {
			r.Text += fmt.Sprintf(" (%d)", remote.Code)
		}
		r.Text += ".\n" + results.Fence(wording.LineOf(remote.Text, 300))
	case errors.Is(err, upstream.ErrUnauthorized):
		remedy := "The operator can change mcp.servers." + x.Name + ".headers"
		if x.Sign != nil {
			remedy = "The user can sign in with: codehand mcp login " + x.Name
		}
		r.Text = fmt.Sprintf("Server %s refuses its credentials (HTTP 401). %s; go on without it.", x.Name, remedy)
	case isDown:
		r.Text = fmt.Sprintf("Server %s is not running: %s. ", x.Name, said(down.why))
		if down.after > 0 {
			r.Text += fmt.Sprintf("It is started again in %s at the earliest. ", wording.Whole(down.after+time.Second))
		}
		r.Text += "Go on without it, or try again later; the operator can look at mcp.servers." + x.Name + "."
	case errors.Is(err, upstream.ErrLost), errors.Is(err, upstream.ErrForgotten):
		r.Text = fmt.Sprintf("Server %s was lost during this call: %s. What the call did is unknown; check before you "+
			"repeat it. The next call starts the server again.", x.Name, said(err))
	default:
		return fmt.Errorf("server %s: %w", x.Name, err)
	}
	return r
}

// said is an error as it may stand in a line of ours: part of it may be a server's words.
func said(err error) string {
	return wording.LineOf(secrets.Masked(results.Clean(err.Error())), 300)
}
