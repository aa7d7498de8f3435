package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A crowd counts who is in at the same time, and in which order they came.
type crowd struct {
	mu    sync.Mutex
	now   int
	most  int
	order []string
}

// came returns who came so far.
func (c *crowd) came() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.order)
}

// peak returns how many were in at the same time.
func (c *crowd) peak() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// stay is a tool body that is in for a while.
func (c *crowd) stay(name string, d time.Duration) func(context.Context, tool.Env) (tool.Result, error) {
	return func(ctx context.Context, _ tool.Env) (tool.Result, error) {
		c.mu.Lock()
		c.now++
		c.most = max(c.most, c.now)
		c.order = append(c.order, name)
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.now--
		}()
		select {
		case <-time.After(d):
			return tool.Result{Text: name}, nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}
}

// A guest is a call in a goroutine.
type guest struct {
	visit  *Visit
	cancel context.CancelFunc
	done   chan struct{}
	result tool.Result
	err    error
}

// send arrives and calls, as a transport does.
func send(t *testing.T, p *corridor, s *session.State, tl tool.Tool, a Arrival) *guest {
	a.Ask = p.Ask
	g := &guest{visit: p.Arrive(s), done: make(chan struct{})}
	g.start(t, tl, a)
	return g
}

func (g *guest) start(t *testing.T, tl tool.Tool, a Arrival) {
	ctx, cancel := context.WithCancel(t.Context())
	g.cancel = cancel
	go func() {
		defer close(g.done)
		defer cancel()
		defer g.visit.Leave()
		g.result, g.err = g.visit.Call(ctx, tl, nil, a)
	}()
}

func (g *guest) isDone() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// bubble runs test on a clock of its own, and checks that no call is left at a gate.
func bubble(t *testing.T, test func(*testing.T, *corridor)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newCorridor()
		test(t, p)
		synctest.Wait()
		if !p.gates.idle() {
			t.Error("a gate is left")
		}
	})
}

func TestGateLetsTenReadersIn(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		var c crowd
		start := time.Now()
		var all []*guest
		for range 12 {
			all = append(all, send(t, p, s, fixture("read", reads, c.stay("r", 300*time.Millisecond)), Arrival{}))
		}
		for _, g := range all {
			<-g.done
		}
		if first, last := all[0].result.Meta.Millis, all[11].result.Meta.Millis; first != 300 || last != 600 {
			t.Errorf("calls say that they took %d and %d ms", first, last)
		}
		if took := time.Since(start); c.peak() != 10 || took != 600*time.Millisecond {
			t.Errorf("%d at the same time, %v in all", c.peak(), took)
		}
	})
}

func TestGateParallelSetting(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		p.Parallel = 3
		s := newState(t, "s")
		var c crowd
		var all []*guest
		for range 9 {
			all = append(all, send(t, p, s, fixture("read", reads, c.stay("r", time.Second)), Arrival{}))
		}
		for _, g := range all {
			<-g.done
		}
		if c.peak() != 3 {
			t.Errorf("%d at the same time", c.peak())
		}
	})
}

func TestGateNobodyOvertakes(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		var c crowd
		var all []*guest
		for i, traits := range []tool.Traits{reads, reads, writes, reads, writes, reads} {
			all = append(all, send(t, p, s, fixture("x", traits, c.stay(fmt.Sprint(i), time.Duration(9-i)*time.Second)), Arrival{Token: true}))
			synctest.Wait()
		}
		for _, g := range all {
			<-g.done
		}
		if want := []string{"0", "1", "2", "3", "4", "5"}; !slices.Equal(c.came(), want) || c.peak() != 2 {
			t.Errorf("order %v with %d at the same time", c.came(), c.peak())
		}
	})
}

// Calls pass in the order in which they came, however late the goroutine of an earlier one is.
func TestGateOrderOfTickets(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		var c crowd
		first := &guest{visit: p.Arrive(s), done: make(chan struct{})}
		second := send(t, p, s, fixture("edit", writes, c.stay("second", time.Second)), Arrival{})
		third := send(t, p, s, fixture("read", reads, c.stay("third", time.Second)), Arrival{})
		time.Sleep(20 * time.Second)
		if len(c.came()) != 0 {
			t.Fatalf("%v did not wait", c.came())
		}
		if n := p.Waiting(); n != 2 {
			t.Errorf("%d calls are said to wait, not 2", n)
		}
		first.start(t, fixture("edit", writes, c.stay("first", time.Second)), Arrival{})
		<-third.done
		if want := []string{"first", "second", "third"}; !slices.Equal(c.came(), want) || !second.isDone() {
			t.Errorf("order %v", c.came())
		}
		if n := p.Waiting(); n != 0 {
			t.Errorf("%d calls are said to wait still", n)
		}
	})
}

func TestGateUngatedPasses(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		var c crowd
		long := send(t, p, s, fixture("run", writes, c.stay("run", time.Minute)), Arrival{Token: true})
		synctest.Wait()
		output := send(t, p, s, fixture("output", free, c.stay("output", 0)), Arrival{})
		next := send(t, p, s, fixture("next", reads, c.stay("next", 0)), Arrival{Token: true})
		<-output.done
		if long.isDone() || next.isDone() {
			t.Error("the others are done")
		}
		<-next.done
		if want := []string{"run", "output", "next"}; !slices.Equal(c.came(), want) {
			t.Errorf("order %v", c.came())
		}
	})
}

// An edit that was sent beside a change to plan mode ran in plan mode: its mode was read before it waited at the gate.
func TestGatePlanModeMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		s.Start = permission.Bypass
		enters := send(t, p, s, fixture("enter", tool.Traits{Private: true}, func(ctx context.Context, _ tool.Env) (tool.Result, error) {
			time.Sleep(time.Second) // the edit waits by then
			_, err := s.Mode.Change(ctx, func(permission.Mode) (permission.Mode, error) { return permission.Plan, nil })
			return tool.Result{}, err
		}), Arrival{})
		synctest.Wait()
		var c crowd
		edit := send(t, p, s, fixture("edit", writes, c.stay("edit", 0)), Arrival{})
		read := send(t, p, s, fixture("read", reads, c.stay("read", 0)), Arrival{})
		for _, g := range []*guest{enters, edit, read} {
			<-g.done
		}
		wantRefusal(t, edit.err, tool.PlanMode, "")
		if enters.err != nil || read.err != nil || !slices.Equal(c.came(), []string{"read"}) {
			t.Errorf("%v ran; %v, %v", c.came(), enters.err, read.err)
		}
	})
}

// TestGateHoldsNoOtherSession: a command of one session held the edits of all others in the same directory. Files have
// locks of their own.
func TestGateHoldsNoOtherSession(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		root := t.TempDir()
		one, two, several := newState(t, "one", root), newState(t, "two", root), newState(t, "several", root)
		several.Shared = true
		var c crowd
		long := send(t, p, one, fixture("run_shell", writes, c.stay("long", time.Hour)), Arrival{Token: true})
		held := send(t, p, several, fixture("run_shell", writes, c.stay("held", time.Hour)), Arrival{Token: true})
		synctest.Wait()
		began := time.Now()
		guests := []*guest{
			send(t, p, two, fixture("edit_file", writes, c.stay("two", time.Second)), Arrival{}),
			send(t, p, several, fixture("edit_file", writes, c.stay("a", time.Second)), Arrival{}),
			send(t, p, several, fixture("edit_file", writes, c.stay("b", time.Second)), Arrival{}),
		}
		for _, g := range guests {
			<-g.done
			if g.err != nil {
				t.Error(g.err)
			}
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("calls of other sessions, and of other conversations in one, took %v", took)
		}
		long.cancel()
		held.cancel()
		<-long.done
		<-held.done
	})
}

func TestGateBusy(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		var c crowd
		began := time.Now().UTC().Format(gateTimeShape)
		long := send(t, p, s, fixture("run_shell", writes, c.stay("long", time.Hour)), Arrival{Token: true})
		time.Sleep(7 * time.Second)
		arrived := time.Now()

		var mu sync.Mutex
		var notes []string
		note := func(_, _ float64, text string) {
			mu.Lock()
			defer mu.Unlock()
			notes = append(notes, text)
		}
		unheard := send(t, p, s, fixture("read", reads, done), Arrival{Progress: note})
		heard := send(t, p, s, fixture("read", reads, done), Arrival{Progress: note, Token: true})
		want := "run_shell has been running since " + began
		<-unheard.done
		wantRefusal(t, unheard.err, tool.Busy, want+". Nothing was done. Try again.")
		if took := time.Since(arrived); took != 45*time.Second {
			t.Errorf("BUSY after %v", took)
		}
		<-heard.done
		wantRefusal(t, heard.err, tool.Busy, want+". Nothing was done. Try again.")
		if took := time.Since(arrived); took != 10*time.Minute {
			t.Errorf("BUSY after %v", took)
		}
		if len(notes) < 59 || len(notes) > 60 || notes[0] != "waiting: "+want {
			t.Errorf("%d notes, the first %q", len(notes), notes[0])
		}
		long.cancel()
		<-long.done
	})
}

// An earlier request whose call never comes to the gate is named as what it is.
func TestGateBusyBehindNobody(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		first := p.Arrive(s)
		since := time.Now().UTC().Format(gateTimeShape)
		next := send(t, p, s, fixture("read", reads, done), Arrival{})
		<-next.done
		wantRefusal(t, next.err, tool.Busy, "An earlier call has been waiting since "+since+". Nothing was done. Try again.")
		first.Leave()
		first.Leave()
	})
}

func TestGateCancelInQueue(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		var c crowd
		first := send(t, p, s, fixture("a", writes, c.stay("a", 10*time.Second)), Arrival{})
		synctest.Wait()
		second := send(t, p, s, fixture("b", writes, c.stay("b", time.Second)), Arrival{})
		synctest.Wait()
		third := send(t, p, s, fixture("c", reads, c.stay("c", time.Second)), Arrival{})
		synctest.Wait()
		second.cancel()
		<-second.done
		wantRefusal(t, second.err, tool.Interrupted, "Tool execution cancelled by user.")
		if first.isDone() || !p.last().Cancelled {
			t.Errorf("the cancelled call waited, or its record does not say so: %+v", p.last())
		}
		<-third.done
		if want := []string{"a", "c"}; !slices.Equal(c.came(), want) {
			t.Errorf("order %v", c.came())
		}
	})
}

func TestGateOpensAfterPanic(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		bad := send(t, p, s, fixture("bad", writes, func(context.Context, tool.Env) (tool.Result, error) { panic("secret cause") }), Arrival{})
		good := send(t, p, s, fixture("good", writes, done), Arrival{})
		<-good.done
		<-bad.done
		e, ok := errors.AsType[*InternalError](bad.err)
		if !ok || !e.Panic || len(e.Ref) != 8 || strings.Contains(e.Error(), "secret") {
			t.Fatalf("got %v", bad.err)
		}
		if log := p.log.String(); !strings.Contains(log, e.Ref) || !strings.Contains(log, "secret cause") || !strings.Contains(log, "gate_test.go") {
			t.Errorf("the log says %s", log)
		}
		if good.err != nil {
			t.Error(good.err)
		}
	})
}

// While a person thinks, others pass; then the call waits behind those that came in between.
func TestGateStepsAsideToAsk(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		p.AskFallback = ""
		p.Ask = func(context.Context, Asking) (tool.Answer, error) {
			time.Sleep(5 * time.Minute)
			return tool.Answer{Outcome: tool.Accepted, Values: map[string][]string{decisionField: {allowOnce}}}, nil
		}
		s := newState(t, "s")
		s.Client.CanAsk = true
		var c crowd
		asked := send(t, p, s, fixture("edit", writes, c.stay("asked", time.Second)), Arrival{})
		var between []*guest
		for i := range 3 {
			between = append(between, send(t, p, s, fixture("read", reads, c.stay(fmt.Sprint(i), 0)), Arrival{}))
		}
		time.Sleep(5*time.Minute - time.Second)
		if len(c.came()) != 3 {
			t.Errorf("only %v passed", c.came())
		}
		late := send(t, p, s, fixture("read", reads, c.stay("late", 40*time.Second)), Arrival{Token: true})
		<-asked.done
		if asked.err != nil || c.came()[len(c.came())-1] != "asked" || !late.isDone() {
			t.Errorf("%v, order %v", asked.err, c.came())
		}
		for _, g := range between {
			<-g.done
		}
	})
}

func TestGateStepsAsideForSlowHooks(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		var c crowd
		p.Hooks = &fakeHooks{before: func(ctx context.Context, e hooks.Event) (hooks.Outcome, error) {
			if e.Tool == "hooked" {
				time.Sleep(20 * time.Second)
			}
			return hooks.Outcome{}, nil
		}}
		start := time.Now()
		hooked := send(t, p, s, fixture("hooked", writes, c.stay("hooked", 0)), Arrival{})
		next := send(t, p, s, fixture("next", writes, c.stay("next", 0)), Arrival{})
		<-next.done
		if waited := time.Since(start); waited != hookPatience {
			t.Errorf("the next call waited %v", waited)
		}
		<-hooked.done
		if want := []string{"next", "hooked"}; !slices.Equal(c.came(), want) {
			t.Errorf("order %v", c.came())
		}
	})
}

// A transport that leaves while the call still works must not let a second writer in.
func TestGateLeaveWhileRunning(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		var c crowd
		first := send(t, p, s, fixture("a", writes, c.stay("a", 10*time.Second)), Arrival{})
		synctest.Wait()
		first.visit.Leave()
		second := send(t, p, s, fixture("b", writes, c.stay("b", time.Second)), Arrival{})
		<-first.done
		<-second.done
		if c.peak() != 1 {
			t.Errorf("%d writers at the same time", c.peak())
		}
	})
}

func TestAnswerBy(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		s := newState(t, "s")
		start := time.Now()
		by := func(d time.Duration, a Arrival) time.Duration {
			v := p.Arrive(s)
			defer v.Leave()
			time.Sleep(d)
			var at time.Time
			_, err := v.Call(t.Context(), fixture("x", writes, func(_ context.Context, e tool.Env) (tool.Result, error) {
				at = e.AnswerBy
				return tool.Result{}, nil
			}), nil, a)
			if err != nil {
				t.Error(err)
			}
			if at.IsZero() {
				return 0
			}
			return at.Sub(start)
		}
		if got := by(0, Arrival{Token: true}); got != 0 {
			t.Errorf("with a token: %v", got)
		}
		if got := by(10*time.Second, Arrival{}); got != 45*time.Second {
			t.Errorf("early: %v", got)
		}
		start = time.Now()
		if got := by(44*time.Second, Arrival{}); got != 49*time.Second {
			t.Errorf("late: %v", got)
		}
	})
}

// TestGateRandom sends random calls of several sessions over shared trees, and watches that no tree has two writers,
// no session a writer beside another call or more than ten readers, and that calls of a session start in their order.
func TestGateRandom(t *testing.T) {
	bubble(t, func(t *testing.T, p *corridor) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		trees := []string{t.TempDir(), t.TempDir(), t.TempDir()}
		w := &watch{t: t, readers: map[string]int{}, writers: map[string]int{}, last: map[string]int{}}
		var sessions []*session.State
		for i := range 5 {
			r.Shuffle(len(trees), func(a, b int) { trees[a], trees[b] = trees[b], trees[a] })
			sessions = append(sessions, newState(t, fmt.Sprint(i), trees[:1+r.IntN(3)]...))
		}
		var wg sync.WaitGroup
		for n := range 600 {
			s := sessions[r.IntN(len(sessions))]
			traits, body := reads, time.Duration(r.IntN(200))*time.Millisecond
			if r.IntN(3) == 0 {
				traits = writes
			}
			late, cancelled := time.Duration(0), time.Duration(-1)
			if r.IntN(4) == 0 {
				late = time.Duration(r.IntN(300)) * time.Millisecond
			}
			if r.IntN(5) == 0 {
				cancelled = time.Duration(r.IntN(400)) * time.Millisecond
			}
			v := p.Arrive(s)
			wg.Go(func() {
				defer v.Leave()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if cancelled >= 0 {
					defer time.AfterFunc(cancelled, cancel).Stop()
				}
				time.Sleep(late)
				_, err := v.Call(ctx, fixture("x", traits, w.run(s, n, traits.Parallel, body)), nil, Arrival{Token: true})
				if e, ok := refusal(err); err != nil && (!ok || e.Code != tool.Interrupted) {
					t.Errorf("call %d: %v", n, err)
				}
			})
			time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
		}
		wg.Wait()
	})
}

// A watch looks at calls while they run.
type watch struct {
	t       *testing.T
	mu      sync.Mutex
	readers map[string]int
	writers map[string]int
	last    map[string]int // number of the writer or reader of a session that started last
}

func (w *watch) run(s *session.State, n int, reader bool, d time.Duration) func(context.Context, tool.Env) (tool.Result, error) {
	return func(ctx context.Context, _ tool.Env) (tool.Result, error) {
		w.enter(s, n, reader)
		defer w.leave(s, reader)
		select {
		case <-time.After(d):
			return tool.Result{}, nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}
}

func (w *watch) enter(s *session.State, n int, reader bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := s.Key.Session
	if reader {
		// Readers that are let in together may start in any order; none may start before an earlier writer.
		w.readers[k]++
	} else {
		w.writers[k]++
		if n < w.last[k] {
			w.t.Errorf("writer %d started after call %d", n, w.last[k])
		}
	}
	if n > w.last[k] {
		w.last[k] = n
	}
	if w.writers[k] > 1 || w.writers[k] == 1 && w.readers[k] > 0 || w.readers[k] > 10 {
		w.t.Errorf("call %d: %d writers and %d readers", n, w.writers[k], w.readers[k])
	}
}

func (w *watch) leave(s *session.State, reader bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := s.Key.Session
	if reader {
		w.readers[k]--
		return
	}
	w.writers[k]--
}

// idle says whether there is no gate.
func (g *gates) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open) == 0
}
