package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A fake is a Model whose answers are functions of the turn, one a turn.
type fake struct {
	turns   []func(ctx context.Context, t Turn, say func(string)) (Answer, error)
	asked   []Turn
	waiting sync.Mutex
}

func (f *fake) Turn(ctx context.Context, t Turn, say func(string)) (Answer, error) {
	f.waiting.Lock()
	defer f.waiting.Unlock()
	f.asked = append(f.asked, t)
	if len(f.asked) > len(f.turns) {
		return Answer{}, &Error{Wrong, "the script has no turn " + strconv.Itoa(len(f.asked))}
	}
	return f.turns[len(f.asked)-1](ctx, t, say)
}

// answers makes a fake that says these answers.
func answers(list ...Answer) *fake {
	f := &fake{}
	for _, a := range list {
		f.turns = append(f.turns, func(context.Context, Turn, func(string)) (Answer, error) { return a, nil })
	}
	return f
}

func text(s string) Answer {
	return Answer{Parts: []Part{{Text: s}}, Stop: StopEnd, Tokens: Tokens{Input: 10, Output: 1}}
}

func call(ids ...string) Answer {
	a := Answer{Stop: StopEnd, Tokens: Tokens{Input: 10, Output: 1}}
	for _, id := range ids {
		name, _, _ := strings.Cut(id, "-")
		a.Parts = append(a.Parts, Part{Call: &Call{ID: id, Name: name, Arguments: json.RawMessage("{}")}})
	}
	return a
}

var (
	plenty  = Budget{Turns: 50, Tokens: 1000, Time: time.Hour}
	reading = Tool{Name: "read", ReadOnly: true}
	writing = Tool{Name: "write"}
	both    = []Tool{reading, writing}
)

func echo(_ context.Context, c Call) Result { return Result{Text: "did " + c.ID} }

// results returns the results in a message, as ID: TEXT.
func results(m Message) (list []string) {
	for _, p := range m.Parts {
		if p.Result != nil {
			list = append(list, p.Result.CallID+": "+p.Result.Text)
		}
	}
	return list
}

// whole fails the test if a conversation could not go on: sides alternate, and each call has its result.
func whole(t *testing.T, messages []Message) {
	t.Helper()
	for i, m := range messages {
		if want := []string{RoleUser, RoleAssistant}[i%2]; m.Role != want || len(m.Parts) == 0 {
			t.Errorf("message %d is of %s with %d parts", i, m.Role, len(m.Parts))
		}
		var want, got []string
		if m.Role == RoleAssistant {
			for _, p := range m.Parts {
				if p.Call != nil {
					want = append(want, p.Call.ID)
				}
			}
			if i+1 < len(messages) {
				for _, p := range messages[i+1].Parts {
					if p.Result != nil {
						got = append(got, p.Result.CallID)
					}
				}
			}
			if !slices.Equal(want, got) {
				t.Errorf("message %d calls %v and is answered %v", i, want, got)
			}
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	m := answers(call("read-1", "read-2", "write-3", "read-4"), call("gone-5"), text("All done."))
	var steps []string
	got, err := Run(t.Context(), Task{
		Model: m, System: "s", Prompt: "p", Tools: both, Do: echo, Budget: plenty, MaxOutput: 7, Effort: "high",
		Step: func(s Step) { steps = append(steps, s.Kind) },
	})
	if err != nil || got.Stopped != Done || got.Text != "All done." || got.Turns != 3 || got.Calls != 5 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got.Tokens != (Tokens{Input: 30, Output: 3}) {
		t.Errorf("tokens %+v", got.Tokens)
	}
	whole(t, got.Messages)
	if r := results(got.Messages[2]); strings.Join(r, " ") != "read-1: did read-1 read-2: did read-2 write-3: did write-3 read-4: did read-4" {
		t.Errorf("results %q", r)
	}
	if r := results(got.Messages[4]); len(r) != 1 || r[0] != `gone-5: TOOL_UNKNOWN: there is no tool "gone". Tools: read, write.` {
		t.Errorf("results %q", r)
	}
	if len(steps) != 3+2*5 || steps[0] != StepTurn {
		t.Errorf("steps %q", steps)
	}
	if first := m.asked[0]; first.System != "s" || first.MaxOutput != 7 || first.Effort != "high" || len(first.Tools) != 2 ||
		len(first.Messages) != 1 || first.Messages[0].Parts[0].Text != "p" {
		t.Errorf("first turn %+v", first)
	}
	if n := []int{len(m.asked[0].Messages), len(m.asked[1].Messages), len(m.asked[2].Messages)}; !slices.Equal(n, []int{1, 3, 5}) {
		t.Errorf("turns with %v messages", n)
	}
}

// Calls that only read run side by side, at most Parallel; one that writes runs alone and in its place.
func TestParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		var mu sync.Mutex
		var order []string
		do := func(ctx context.Context, c Call) Result {
			n := now.Add(1)
			defer now.Add(-1)
			most.Store(max(most.Load(), n))
			if c.Name == "write" && n != 1 {
				t.Errorf("%s runs with %d others", c.ID, n-1)
			}
			time.Sleep(time.Second)
			mu.Lock()
			order = append(order, c.Name)
			mu.Unlock()
			return echo(ctx, c)
		}
		start := time.Now()
		got, err := Run(t.Context(), Task{
			Model:  answers(call("read-1", "read-2", "read-3", "write-4", "write-5", "read-6", "read-7"), text("x")),
			Prompt: "p", Tools: both, Do: do, Budget: Budget{Turns: 9, Tokens: 1000, Time: time.Hour, Parallel: 2},
		})
		if err != nil || got.Stopped != Done {
			t.Fatal(got.Stopped, err)
		}
		if most.Load() != 2 || time.Since(start) != 5*time.Second {
			t.Errorf("at most %d at once, %v", most.Load(), time.Since(start))
		}
		if strings.Join(order, " ") != "read read read write write read read" {
			t.Errorf("order %v", order)
		}
		whole(t, got.Messages)
	})
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	forever := func() *fake {
		f := &fake{}
		for i := range 60 {
			f.turns = append(f.turns, func(context.Context, Turn, func(string)) (Answer, error) {
				a := call("write-" + strconv.Itoa(i))
				a.Parts = slices.Insert(a.Parts, 0, Part{Text: "turn " + strconv.Itoa(i)})
				return a, nil
			})
		}
		return f
	}
	for _, c := range []struct {
		name, want string
		budget     Budget
		turns      int
	}{
		{"turns", NoTurns, Budget{Turns: 3, Tokens: 1000, Time: time.Hour}, 3},
		{"tokens", NoTokens, Budget{Turns: 50, Tokens: 25, Time: time.Hour}, 3},
		{"time", NoTime, Budget{Turns: 50, Tokens: 1000, Time: 4500 * time.Millisecond}, 5},
		{"no turns", NoTurns, Budget{Tokens: 1, Time: 1}, 0},
		{"no tokens", NoTokens, Budget{Turns: 1, Time: 1}, 0},
		{"no time", NoTime, Budget{Turns: 1, Tokens: 1}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := forever()
				got, err := Run(t.Context(), Task{Model: m, Prompt: "p", Tools: both, Budget: c.budget, Do: func(ctx context.Context, c Call) Result {
					time.Sleep(time.Second)
					return echo(ctx, c)
				}})
				if err != nil || got.Stopped != c.want || got.Turns != c.turns {
					t.Errorf("%s after %d turns, %v", got.Stopped, got.Turns, err)
				}
				if c.turns > 0 && got.Text != "turn "+strconv.Itoa(c.turns-1) {
					t.Errorf("text %q", got.Text)
				}
				whole(t, got.Messages)
				if c.name == "turns" {
					last := m.asked[2].Messages
					if p := last[len(last)-1].Parts; len(p) != 2 || !strings.HasPrefix(p[1].Text, "[This is your last turn") {
						t.Errorf("before the last turn: %+v", p)
					}
				}
			})
		})
	}
}

func TestStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &fake{turns: []func(context.Context, Turn, func(string)) (Answer, error){
			func(ctx context.Context, _ Turn, say func(string)) (Answer, error) {
				for range 3 { // pieces of text keep it alive
					time.Sleep(9 * time.Minute)
					say("a")
				}
				<-ctx.Done()
				return Answer{}, ctx.Err()
			},
		}}
		start := time.Now()
		got, err := Run(t.Context(), Task{Model: m, Prompt: "p", Budget: Budget{Turns: 9, Tokens: 9, Time: 9 * time.Hour}})
		if err != nil || got.Stopped != Stalled || time.Since(start) != 37*time.Minute {
			t.Errorf("%s after %v, %v", got.Stopped, time.Since(start), err)
		}
		whole(t, got.Messages)
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	reason := errors.New("the client has gone")
	t.Run("while the model answers", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			m := answers(call("read-1"))
			m.turns = append(m.turns, func(ctx context.Context, _ Turn, say func(string)) (Answer, error) {
				say("half a")
				<-ctx.Done()
				return Answer{}, ctx.Err()
			})
			time.AfterFunc(time.Minute, func() { cancel(reason) })
			start := time.Now()
			got, err := Run(ctx, Task{Model: m, Prompt: "p", Tools: both, Do: echo, Budget: plenty})
			if !errors.Is(err, reason) || got.Stopped != Cancelled || time.Since(start) != time.Minute || got.Calls != 1 {
				t.Errorf("%+v, %v", got, err)
			}
			whole(t, got.Messages)
		})
	})
	t.Run("while tools run", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		got, err := Run(ctx, Task{Model: answers(call("write-1", "write-2", "read-3")), Prompt: "p", Tools: both, Budget: plenty,
			Do: func(context.Context, Call) Result {
				cancel(reason)
				return Result{Text: "cancelled", IsError: true}
			}})
		if !errors.Is(err, reason) || got.Stopped != Cancelled {
			t.Errorf("%s, %v", got.Stopped, err)
		}
		whole(t, got.Messages)
		if r := results(got.Messages[2]); len(r) != 3 || r[0] != "write-1: cancelled" || r[2] != "read-3: Not run: the run was ended." {
			t.Errorf("results %q", r)
		}
	})
	t.Run("before it begins", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(reason)
		m := answers()
		if got, err := Run(ctx, Task{Model: m, Prompt: "p", Budget: plenty}); !errors.Is(err, reason) || got.Stopped != Cancelled || len(m.asked) > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestStops(t *testing.T) {
	t.Parallel()
	fail := func(e error) *fake {
		return &fake{turns: []func(context.Context, Turn, func(string)) (Answer, error){
			func(context.Context, Turn, func(string)) (Answer, error) { return text("had said"), nil },
			func(context.Context, Turn, func(string)) (Answer, error) { return Answer{}, e },
		}}
	}
	stop := func(stop string) *fake { return answers(Answer{Parts: []Part{{Text: "had said"}}, Stop: stop}) }
	for _, c := range []struct {
		name, want string
		model      *fake
		failed     bool
	}{
		{"length", Cut, stop(StopLength), false},
		{"refuse", Refused, stop(StopRefuse), false},
		{"full", NoRoom, stop(StopFull), false},
		{"full error", NoRoom, fail(&Error{Full, "x"}), false},
		{"denied", Failed, fail(&Error{Denied, "x"}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inbox := make(chan string, 1)
			if strings.Contains("full error denied", c.name) {
				inbox <- "one more" // so that there is a second turn
			}
			first := true
			got, err := Run(t.Context(), Task{Model: c.model, Prompt: "p", Budget: plenty, Inbox: inbox, Step: func(s Step) {
				if s.Kind == StepTurn && first && len(c.model.turns) == 2 {
					inbox <- "after the first turn"
				}
				first = false
			}})
			if got.Stopped != c.want || (err != nil) != c.failed || got.Text != "had said" {
				t.Errorf("%+v, %v", got, err)
			}
			whole(t, got.Messages)
		})
	}
	t.Run("pause", func(t *testing.T) {
		t.Parallel()
		m := answers(Answer{Parts: []Part{{Opaque: json.RawMessage(`{}`)}}, Stop: StopPause}, text("x"))
		if got, err := Run(t.Context(), Task{Model: m, Prompt: "p", Budget: plenty}); err != nil || got.Turns != 2 || got.Text != "x" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Messages that arrive are read before the next turn; one that arrives with the last answer makes another turn.
func TestInbox(t *testing.T) {
	t.Parallel()
	inbox := make(chan string, 3)
	m := &fake{turns: []func(context.Context, Turn, func(string)) (Answer, error){
		func(context.Context, Turn, func(string)) (Answer, error) {
			inbox <- "while it calls"
			return call("read-1"), nil
		},
		func(context.Context, Turn, func(string)) (Answer, error) {
			inbox <- "while it ends"
			close(inbox)
			return text("first end"), nil
		},
		func(context.Context, Turn, func(string)) (Answer, error) { return text("second end"), nil },
	}}
	inbox <- "before"
	got, err := Run(t.Context(), Task{Model: m, Prompt: "p", Tools: both, Do: echo, Budget: plenty, Inbox: inbox})
	if err != nil || got.Text != "second end" || got.Turns != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	whole(t, got.Messages)
	for i, want := range map[int]string{0: "before", 2: "while it calls", 4: "while it ends"} {
		parts := got.Messages[i].Parts
		if parts[len(parts)-1].Text != want {
			t.Errorf("message %d: %+v", i, parts)
		}
	}
}

// A run goes on with the transcript of an earlier one, however that ended, and does not change it.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	first, err := Run(t.Context(), Task{Model: answers(call("write-1", "write-2")), Prompt: "p", Tools: both, Do: echo,
		Budget: Budget{Turns: 1, Tokens: 1000, Time: time.Hour}})
	if err != nil || first.Stopped != NoTurns {
		t.Fatal(first.Stopped, err)
	}
	whole(t, first.Messages)
	if r := results(first.Messages[2]); r[1] != "write-2: Not run: the run had ended (turns)." {
		t.Errorf("results %q", r)
	}
	before := len(first.Messages[2].Parts)
	second, err := Run(t.Context(), Task{Model: answers(text("x")), History: first.Messages, Prompt: "go on", Tools: both, Do: echo, Budget: plenty})
	if err != nil || second.Text != "x" || len(second.Messages) != 4 || len(first.Messages[2].Parts) != before {
		t.Fatalf("%+v, %v", second, err)
	}
	whole(t, second.Messages)
}

func TestBadCalls(t *testing.T) {
	t.Parallel()
	broken := call("write-1", "write-2")
	broken.Parts[1].Call.Broken = "the arguments end too early"
	cut := broken
	cut.Stop = StopLength
	got, err := Run(t.Context(), Task{Model: answers(broken, cut, text("x")), Prompt: "p", Tools: both, Do: func(ctx context.Context, c Call) Result {
		if c.Broken != "" {
			t.Error("a broken call is done")
		}
		return Result{Text: strings.Repeat("ä", maxResult)}
	}, Budget: plenty})
	if err != nil || got.Stopped != Done {
		t.Fatal(got.Stopped, err)
	}
	whole(t, got.Messages)
	for i, want := range map[int]string{2: "INPUT_INVALID: the arguments end too early. Make", 4: "INPUT_INVALID: the arguments are incomplete, because"} {
		p := got.Messages[i].Parts
		if long := p[0].Result; len(long.Text) > maxResult+50 || !strings.HasSuffix(long.Text, "ä\n[262144 more bytes are left out]") || long.IsError {
			t.Errorf("a long result has %d bytes", len(long.Text))
		}
		if !strings.HasPrefix(p[1].Result.Text, want) || !p[1].Result.IsError {
			t.Errorf("%+v", p[1].Result)
		}
	}
}

func TestSpent(t *testing.T) {
	t.Parallel()
	n := Tokens{Input: 1, Output: 2, CacheRead: 30, CacheWrite: 4}.add(Tokens{Input: 1, Estimated: true})
	if n.Total() != 38 || n.spent() != 11 || !n.Estimated {
		t.Errorf("%+v: total %d, spent %d", n, n.Total(), n.spent())
	}
	if err := error(&Error{Busy, "text"}); err.Error() != "text" {
		t.Error(err)
	}
}
