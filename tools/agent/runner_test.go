package agent

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/agent/loop"
	"codehand/tools/skills"
)

// A held model answers when it is let.
type held struct {
	let  chan struct{}
	runs atomic.Int32
	most atomic.Int32
}

func (m *held) Turn(ctx context.Context, _ loop.Turn, _ func(string)) (loop.Answer, error) {
	n := m.runs.Add(1)
	for {
		most := m.most.Load()
		if n <= most || m.most.CompareAndSwap(most, n) {
			break
		}
	}
	defer m.runs.Add(-1)
	select {
	case <-m.let:
		return loop.Answer{Parts: []loop.Part{{Text: "done"}}, Stop: loop.StopEnd}, nil
	case <-ctx.Done():
		return loop.Answer{}, ctx.Err()
	}
}

// noHands open sessions in which nothing can be called.
type noHands struct{ opened, forgotten atomic.Int32 }

func (h *noHands) Open(context.Context, Opening) (Child, error) {
	h.opened.Add(1)
	return noChild{h}, nil
}
func (h *noHands) Sampler() (loop.Model, int) { return nil, 0 }

func (h *noHands) Begin(context.Context, string, string) (string, func(string), error) {
	return "", func(string) {}, nil
}

type noChild struct{ h *noHands }

func (noChild) Do(context.Context, loop.Call) loop.Result { return loop.Result{} }
func (noChild) Alone()                                    {}
func (noChild) Close()                                    {}
func (c noChild) Forget()                                 { c.h.forgotten.Add(1) }

func order(m *held, h Hands, who string) (Options, Order) {
	o := Options{Auto: true, Model: m, Limits: Limits{Depth: 1, Parallel: 2, Queue: 3, Turns: 5, Tokens: 1000, Time: time.Hour, MaxOutput: 100}}
	t, _ := ReadTypes(skills.Set{}).Find("explore")
	return o, Order{Parent: Parent{Principal: who, Session: "s"}, Hands: h, Backend: API, Type: t, Prompt: "x"}
}

// Of one principal so many work at once and so many wait; others have their own. One that has ended is forgotten later.
func TestRunnerLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := &held{let: make(chan struct{})}, &noHands{}
		o, job := order(m, h, "a")
		r := New(o)
		ends := make(chan Outcome)
		for range 5 {
			x, err := r.Start(job)
			if err != nil {
				t.Fatal(err)
			}
			go func() { ends <- x.Do(t.Context(), nil) }()
		}
		if _, err := r.Start(job); !errors.Is(err, ErrQueue) {
			t.Errorf("a sixth: %v", err)
		}
		_, other := order(m, h, "b")
		y, err := r.Start(other)
		if err != nil {
			t.Fatal(err)
		}
		y.Drop()
		synctest.Wait()
		if n := m.runs.Load(); n != 2 {
			t.Errorf("%d work at once", n)
		}
		close(m.let)
		for range 5 {
			if out := <-ends; out.Stopped != loop.Done || out.Text != "done" {
				t.Errorf("%+v", out)
			}
		}
		if m.most.Load() != 2 || h.opened.Load() != 5 || len(r.Names(job.Parent)) != 5 || len(r.Names(other.Parent)) != 0 {
			t.Errorf("at most %d at once, %d sessions, %v", m.most.Load(), h.opened.Load(), r.Names(job.Parent))
		}
		time.Sleep(31 * time.Minute)
		if n := len(r.Names(job.Parent)); n != 0 || h.forgotten.Load() != 5 {
			t.Errorf("%d are known after 31 min, %d forgotten", n, h.forgotten.Load())
		}
	})
}

// What those that have ended know has a limit of its size: the oldest are forgotten first, and the newest stays.
func TestRunnerForgetsMuch(t *testing.T) {
	t.Parallel()
	m, h := &held{let: make(chan struct{})}, &noHands{}
	close(m.let)
	o, job := order(m, h, "a")
	r := New(o)
	for i, mib := range []int{7, 7, 7, 1, 17} {
		job.Prompt = strings.Repeat("x", mib<<20)
		x, err := r.Start(job)
		if err != nil {
			t.Fatal(err)
		}
		x.Do(t.Context(), nil)
		if got, want := len(r.Names(job.Parent)), []int{1, 2, 2, 3, 1}[i]; got != want || r.Names(job.Parent)[0] != x.ID {
			t.Errorf("after %d: %d are known, want %d", i+1, got, want)
		}
	}
	if n := h.forgotten.Load(); n != 4 {
		t.Errorf("%d are forgotten", n)
	}
	released := 0
	r.Release = func() { released++ }
	if r.Close(); released != 1 {
		t.Errorf("the models are released %d times", released)
	}
}

func TestRunnerRefuses(t *testing.T) {
	m, h := &held{}, &noHands{}
	o, job := order(m, h, "a")
	o.PerHour = 2
	now := time.Unix(0, 0)
	o.Now = func() time.Time { return now }
	r := New(o)
	deep := job
	deep.Parent.Depth = 1
	if _, err := r.Start(deep); !errors.Is(err, ErrDepth) {
		t.Errorf("depth 2: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		dropped, err := r.Start(job)
		if err != nil {
			t.Fatal(err)
		}
		dropped.Drop() // what a call was refused counted as started
		x, err := r.Start(job)
		if err != nil {
			t.Fatal(err)
		}
		if out := x.Do(ctx, nil); out.Stopped != loop.Cancelled {
			t.Errorf("%+v", out)
		}
	}
	if _, err := r.Start(job); !errors.Is(err, ErrPerHour) {
		t.Errorf("a third within the hour: %v", err)
	}
	now = now.Add(time.Hour)
	x, err := r.Start(job)
	if err != nil {
		t.Errorf("an hour later: %v", err)
	}
	x.Do(ctx, nil)
	if _, _, err := r.Send(Parent{Principal: "a", Session: "other"}, x.ID, "x", h); !errors.Is(err, ErrUnknown) {
		t.Errorf("a message of another session: %v", err)
	}
	if _, _, err := r.Send(Parent{Principal: "b", Session: "s"}, x.ID, "x", h); !errors.Is(err, ErrUnknown) {
		t.Errorf("a message of another principal: %v", err)
	}
	r.Close()
	if _, err := r.Start(job); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	below := o
	below.Depth = 1
	if _, err := New(below).Start(job); !errors.Is(err, ErrDepth) {
		t.Errorf("in a process below another agent: %v", err)
	}
}

// A listener is a model that repeats all that it was told.
type listener struct{}

func (listener) Turn(_ context.Context, t loop.Turn, _ func(string)) (loop.Answer, error) {
	var all []string
	for _, m := range t.Messages {
		for _, p := range m.Parts {
			if m.Role == loop.RoleUser {
				all = append(all, p.Text)
			}
		}
	}
	return loop.Answer{Parts: []loop.Part{{Text: strings.Join(all, ", ")}}, Stop: loop.StopEnd}, nil
}

// What keeps a sub-agent from going on with a message costs it nothing: it was forgotten when its job could not be
// begun, lost the message that came too late for its last turn where no place was free, and its task where it was
// stopped before it had begun.
func TestRunnerKeepsWhatItKnows(t *testing.T) {
	t.Parallel()
	h := &noHands{}
	_, job := order(nil, h, "a")
	o, _ := order(nil, nil, "")
	o.Model, o.Parallel, o.Queue = listener{}, 1, 0
	r := New(o)
	send := func(x *Run, message string) (string, error) {
		y, delivered, err := r.Send(job.Parent, x.ID, message, job.Hands)
		if err != nil || delivered || y != x {
			return "", err
		}
		return x.Do(t.Context(), nil).Text, nil
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	begun := func(ctx context.Context) *Run {
		x, err := r.Start(job)
		if err != nil {
			t.Fatal(err)
		}
		x.Do(ctx, nil)
		return x
	}
	x := begun(t.Context())
	if y, _, err := r.Send(job.Parent, x.ID, "not said", job.Hands); err != nil || y != x {
		t.Fatal(err)
	}
	x.Drop() // its job cannot be begun
	said := len(x.history)
	if text, err := send(x, "one"); text != "x, one" || err != nil {
		t.Errorf("after a refusal: %q, %v", text, err)
	}
	if len(x.history) != 2*said || said == 0 || h.forgotten.Load() != 0 {
		t.Errorf("%d messages, before %d; forgotten %d times", len(x.history), said, h.forgotten.Load())
	}
	x.inbox <- "late"
	other, err := r.Start(job)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := send(x, "two"); !errors.Is(err, ErrQueue) {
		t.Errorf("without a place: %v", err)
	}
	other.Drop()
	if text, err := send(x, "three"); text != "x, one, late\n\nthree" || err != nil {
		t.Errorf("after it waited: %q, %v", text, err)
	}
	r.groups["a"].slots <- struct{}{} // so that it waits
	waited := begun(stopped)
	<-r.groups["a"].slots
	if text, err := send(waited, "go on"); text != "x\n\ngo on" || err != nil {
		t.Errorf("one that had not begun: %q, %v", text, err)
	}
}

// A nester is a model that calls the tool agent first.
type nester struct{}

func (nester) Turn(_ context.Context, t loop.Turn, _ func(string)) (loop.Answer, error) {
	if t.Messages[0].Parts[0].Text == "nest" && len(t.Messages) == 1 {
		return loop.Answer{Parts: []loop.Part{{Call: &loop.Call{ID: "1", Name: "agent"}}}, Stop: loop.StopEnd}, nil
	}
	return loop.Answer{Parts: []loop.Part{{Text: "done"}}, Stop: loop.StopEnd}, nil
}

// nestHands open sessions in which a call starts another sub-agent and waits for it.
type nestHands struct {
	noHands
	nest func(ctx context.Context)
}

func (h *nestHands) Open(context.Context, Opening) (Child, error) {
	return nestChild{noChild{&h.noHands}, h}, nil
}

type nestChild struct {
	noChild
	h *nestHands
}

func (c nestChild) Do(ctx context.Context, _ loop.Call) loop.Result {
	c.h.nest(ctx)
	return loop.Result{Text: "nested"}
}

// Sub-agents that wait for others of their own hold no place. They held all places once: none went on for ten minutes,
// and then all failed.
func TestRunnerNests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &nestHands{}
		o, job := order(nil, h, "a")
		o.Model, o.Limits.Depth, o.Queue = nester{}, 2, 9
		o.Tools = func() []Offered { return []Offered{{Tool: Tool{Name: "agent"}, For: StartingAgents}} }
		r := New(o)
		job.Prompt, job.Tools = "nest", []loop.Tool{{Name: "agent"}}
		leaf := job
		leaf.Parent.Depth, leaf.Prompt = 1, "leaf"
		h.nest = func(ctx context.Context) {
			x, err := r.Start(leaf)
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Second) // until all of them are here
			if out := x.Do(ctx, nil); out.Stopped != loop.Done {
				t.Errorf("nested: %+v", out)
			}
		}
		all := func(ctx context.Context, want string) {
			ends := make(chan Outcome)
			for range 4 {
				x, err := r.Start(job)
				if err != nil {
					t.Fatal(err)
				}
				go func() { ends <- x.Do(ctx, nil) }()
			}
			for range 4 {
				if out := <-ends; out.Stopped != want {
					t.Errorf("%+v, want %s", out, want)
				}
			}
			if n := len(r.groups["a"].slots); n != 0 || r.groups["a"].waiting != 0 {
				t.Errorf("%d places and %d in the queue are left", n, r.groups["a"].waiting)
			}
		}
		all(t.Context(), loop.Done)
		// The end of a call gives back what is taken, and not twice.
		ctx, cancel := context.WithCancel(t.Context())
		h.nest = func(context.Context) { cancel() }
		all(ctx, loop.Cancelled)
	})
}

func TestInForce(t *testing.T) {
	m := &held{}
	for _, c := range []struct {
		o       Options
		sampler bool
		want    Backend
	}{
		{Options{Auto: true}, true, None},
		{Options{Auto: true, Model: m, Command: Command{Argv: []string{"/x"}}, Sampling: true}, true, API},
		{Options{Auto: true, Command: Command{Argv: []string{"/x"}}, Sampling: true}, true, Program},
		{Options{Auto: true, Sampling: true}, true, Sampling},
		{Options{Auto: true, Sampling: true}, false, None},
		{Options{Backend: Sampling, Model: m, Sampling: true}, true, Sampling},
		{Options{Backend: Program, Model: m}, true, None},
		{Options{Backend: "brief", Model: m}, true, None},
		{Options{}, true, None},
	} {
		if got := New(c.o).InForce(c.sampler); got != c.want {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
	}
	if got := (*Runner)(nil).InForce(true); got != None {
		t.Errorf("no runner: %q", got)
	}
}

// closing is a session that says when it is closed.
type closing struct {
	noHands
	closed func()
}

func (h *closing) Open(context.Context, Opening) (Child, error) {
	h.opened.Add(1)
	return closingChild{h}, nil
}

type closingChild struct{ h *closing }

func (closingChild) Do(context.Context, loop.Call) loop.Result { return loop.Result{} }
func (closingChild) Alone()                                    {}
func (c closingChild) Close()                                  { c.h.closed() }
func (closingChild) Forget()                                   {}

// A message that comes while a sub-agent's session is closed, which takes as long as its jobs take to end, is delivered
// and read in the same run: it went to a session that was closed below it.
func TestSendWhileItEnds(t *testing.T) {
	t.Parallel()
	h := &closing{}
	o, job := order(nil, h, "a")
	o.Model = listener{}
	r := New(o)
	x, err := r.Start(job)
	if err != nil {
		t.Fatal(err)
	}
	closed := 0
	h.closed = func() {
		if !r.Holds("a", "s") {
			t.Error("it ends, and does not count as running")
		}
		if closed++; closed > 1 {
			return
		}
		if _, delivered, err := r.Send(job.Parent, x.ID, "more", h); !delivered || err != nil {
			t.Errorf("a message while it ends: %v, %v", delivered, err)
		}
	}
	out := x.Do(t.Context(), nil)
	if out.Text != "x, more" || out.Stopped != loop.Done || h.opened.Load() != 2 {
		t.Errorf("%+v, opened %d times", out, h.opened.Load())
	}
	said := x.history
	if r.Holds("a", "s") || closed != 2 || len(said) != 4 || said[2].Parts[0].Text != "more" {
		t.Errorf("it runs: %t, closed %d times, said %+v", r.Holds("a", "s"), closed, said)
	}
}

// panics is a model with a fault.
type panics struct{}

func (panics) Turn(context.Context, loop.Turn, func(string)) (loop.Answer, error) { panic("planted") }

// A fault while a sub-agent ran left it running for good, and its session open.
func TestPanicEnds(t *testing.T) {
	t.Parallel()
	closed := 0
	h := &closing{closed: func() { closed++ }}
	o, job := order(nil, h, "a")
	o.Model = panics{}
	r := New(o)
	x, err := r.Start(job)
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the model did not panic")
			}
		}()
		x.Do(t.Context(), nil)
	}()
	if r.Holds("a", "s") || closed != 1 || r.groups["a"].waiting != 0 || len(r.groups["a"].slots) != 0 {
		t.Errorf("it runs: %t, closed %d times, %d wait", r.Holds("a", "s"), closed, r.groups["a"].waiting)
	}
}
