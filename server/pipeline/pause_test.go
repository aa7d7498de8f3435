package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A valve pauses the calls of principal p, and resumes them.
type valve struct{ atomic.Pointer[Pause] }

func (v *valve) paused(principal string) *Pause {
	if principal != "p" {
		return nil
	}
	return v.Load()
}

func (v *valve) shut() { v.Store(&Pause{By: "p", Since: time.Now(), Where: "on http://page/"}) }

// valved runs test with a Pipeline whose calls a person has paused.
func valved(t *testing.T, test func(*testing.T, *corridor, *valve)) {
	t.Helper()
	bubble(t, func(t *testing.T, p *corridor) {
		v := &valve{}
		v.shut()
		p.Paused, p.PauseTime = v.paused, 5*time.Minute
		test(t, p, v)
	})
}

// TestPauseHolds: calls of a paused principal wait, say so to a client that shows it, and go on in their order when a
// person resumes. Those of another principal, and of our own command line, run.
func TestPauseHolds(t *testing.T) {
	valved(t, func(t *testing.T, p *corridor, v *valve) {
		s, other := newState(t, "s"), newState(t, "o")
		other.Key.Principal = "q"
		var c crowd
		var notes []string
		note := func(_, _ float64, text string) { notes = append(notes, text) }
		tl := func(name string) tool.Tool { return fixture(name, writes, c.stay(name, time.Second)) }
		first := send(t, p, s, tl("first"), Arrival{Token: true, Progress: note})
		second := send(t, p, s, fixture("second", free, c.stay("second", 2*time.Second)), Arrival{Token: true})
		send(t, p, other, tl("other"), Arrival{})
		send(t, p, newState(t, "typed"), tl("typed"), Arrival{From: From{Transport: InProcess}})
		time.Sleep(time.Minute)
		if got := c.came(); len(got) != 2 || slices.Contains(got, "first") || slices.Contains(got, "second") {
			t.Errorf("ran while paused: %v", got)
		}
		v.Store(nil)
		<-first.done
		<-second.done
		if first.err != nil || second.err != nil {
			t.Errorf("%v, %v", first.err, second.err)
		}
		if len(notes) < 5 || strings.Join(notes, "") != strings.Repeat(pauseNote, len(notes)) {
			t.Errorf("told %q", notes)
		}
	})
}

// TestPauseEnds: a call waits as long as its client may, then it is refused with what to do; so it is at once where the
// process stops, and when the client has left. A cancelled call is cancelled.
func TestPauseEnds(t *testing.T) {
	valved(t, func(t *testing.T, p *corridor, v *valve) {
		s := newState(t, "s")
		began := time.Now().UTC().Format(gateTimeShape)
		tl := fixture("work", writes, done)
		for name, x := range map[string]struct {
			a    Arrival
			want time.Duration
		}{
			"unheard":     {Arrival{}, waitUnheard},
			"heard":       {Arrival{Token: true}, 5 * time.Minute},
			"a sub-agent": {Arrival{Agent: Agent{ID: "a"}}, 5 * time.Minute},
			"left":        {Arrival{Token: true, Lost: func() bool { return true }}, pauseLook},
		} {
			start := time.Now()
			_, err := p.run(t, s, tl, "", x.a)
			wantRefusal(t, err, tool.Paused, "The user paused all calls at "+began+". Nothing was done, and no other call "+
				"will run. Stop here and tell the user: they resume on http://page/. Make exactly this call again after that.")
			if took := time.Since(start); took != x.want {
				t.Errorf("%s: after %v, want %v", name, took, x.want)
			}
			if r := p.last(); r.Decision != pausedNow || r.By != byUser || r.Code != string(tool.Paused) {
				t.Errorf("record %+v", r)
			}
		}
		g := send(t, p, s, tl, Arrival{Token: true})
		synctest.Wait()
		g.cancel()
		<-g.done
		wantRefusal(t, g.err, tool.Interrupted, "")

		g = send(t, p, s, tl, Arrival{Token: true})
		synctest.Wait()
		v.Store(&Pause{By: "root\n\x1b[2J", Where: "here", Closing: true})
		<-g.done
		wantRefusal(t, g.err, tool.Paused, `The administrator root \x1b[2J paused all calls. Nothing was done, and no other call `+
			"will run. Stop here and tell the user: they resume here. Make exactly this call again after that.")
		v.Store(&Pause{Where: "here", Closing: true})
		_, err := p.run(t, s, tl, "", Arrival{Token: true})
		if r := wantRefusal(t, err, tool.Paused, ""); !strings.HasPrefix(r.Text, "A person paused all calls. ") {
			t.Error(r.Text)
		}
	})
}

// lingers lets the hooks of the tool `after` take a while.
func lingers(_ context.Context, e hooks.Event) (hooks.Outcome, error) {
	if e.Tool == "after" || e.Tool == "run_shell" {
		time.Sleep(10 * time.Second)
	}
	return hooks.Outcome{}, nil
}

// TestPauseOvertakes: a call that waited for its turn, or for a hook, when calls were paused does not run before they are
// resumed; and plan mode that began meanwhile holds for it.
func TestPauseOvertakes(t *testing.T) {
	for name, kind := range map[string]tool.Traits{"writes": writes, "reads": reads, "ungated": free} {
		for _, plan := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " plan ", plan), func(t *testing.T) {
				valved(t, func(t *testing.T, p *corridor, v *valve) {
					v.Store(nil)
					p.Hooks = &fakeHooks{before: lingers}
					s := newState(t, "s")
					var c crowd
					before := send(t, p, s, fixture("before", writes, c.stay("before", 20*time.Second)), Arrival{Token: true})
					after := send(t, p, s, fixture("after", kind, c.stay("after", 0)), Arrival{Token: true})
					synctest.Wait()
					v.shut()
					time.Sleep(time.Minute)
					if <-before.done; !slices.Equal(c.came(), []string{"before"}) {
						t.Errorf("ran while paused: %v", c.came())
					}
					if plan {
						_, err := s.Mode.Change(t.Context(), func(permission.Mode) (permission.Mode, error) { return permission.Plan, nil })
						if err != nil {
							t.Fatal(err)
						}
					}
					v.Store(nil)
					if <-after.done; plan && !kind.ReadOnly {
						wantRefusal(t, after.err, tool.PlanMode, "")
					} else if after.err != nil {
						t.Error(after.err)
					}
				})
			})
		}
	}
}

// TestPauseDecidesAnew: a rule of the session that a person takes back during the pause allows a call no longer that it
// had allowed before.
func TestPauseDecidesAnew(t *testing.T) {
	for _, takenBack := range []bool{false, true} {
		t.Run(fmt.Sprint(takenBack), func(t *testing.T) {
			valved(t, func(t *testing.T, p *corridor, v *valve) {
				v.Store(nil)
				p.AskFallback = ""
				s := newState(t, "s")
				grants := func(all ...permission.Grant) {
					_, err := s.Grants.Change(t.Context(), func([]permission.Grant) ([]permission.Grant, error) { return all, nil })
					if err != nil {
						t.Fatal(err)
					}
				}
				grants(permission.Grant{Rule: "Bash(npm run *)", At: time.Now()})
				var c crowd
				before := send(t, p, s, fixture("before", reads, c.stay("before", 20*time.Second)), Arrival{Token: true})
				ran := 0
				tl, result := commander(&ran), make(chan error, 1)
				go func() {
					_, err := p.run(t, s, tl, command("npm run build"), Arrival{Token: true})
					result <- err
				}()
				synctest.Wait()
				v.shut()
				<-before.done
				synctest.Wait()
				if takenBack {
					grants()
				}
				v.Store(nil)
				if err := <-result; takenBack {
					wantRefusal(t, err, tool.AskUnavailable, "")
				} else if err != nil || ran != 1 {
					t.Errorf("ran %d times, %v", ran, err)
				}
			})
		})
	}
}

// TestPauseKeepsAnswer: what a person answered before the pause is not asked again after it.
func TestPauseKeepsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, s, a := askingCorridor(t, saying(allowOnce))
		v := &valve{}
		p.Paused, p.PauseTime = v.paused, time.Minute
		a.say = func(Asking) (tool.Answer, error) { v.shut(); return accept(allowOnce, ""), nil }
		time.AfterFunc(10*time.Second, func() { v.Store(nil) })
		ran, start := 0, time.Now()
		if _, err := p.run(t, s, commander(&ran), command("npm run build"), Arrival{Token: true}); err != nil || ran != 1 || len(a.asked) != 1 {
			t.Errorf("ran %d times, asked %d times, %v", ran, len(a.asked), err)
		}
		if time.Since(start) < 10*time.Second {
			t.Error("it did not wait")
		}
	})
}

// BenchmarkPaused is what it costs each call that a person may pause calls.
func BenchmarkPaused(b *testing.B) {
	c := &call{pipe: &Pipeline{Paused: (&valve{}).paused}, state: &session.State{Key: session.Key{Principal: "p"}}}
	for b.Loop() {
		if waited, err := resumed(context.Background(), c); waited || err != nil {
			b.Fatal(err)
		}
	}
}

// TestPauseDenies: people pause calls to narrow what holds. A rule that a person sets meanwhile holds for the calls that
// waited, too.
func TestPauseDenies(t *testing.T) {
	valved(t, func(t *testing.T, p *corridor, v *valve) {
		s := newState(t, "s")
		var c crowd
		call := send(t, p, s, fixture("work", writes, c.stay("work", 0)), Arrival{Token: true})
		synctest.Wait()
		_, err := s.Limit.Change(t.Context(), func(l session.Limit) (session.Limit, error) {
			l.Rules = append(l.Rules, session.SetRule{Rule: "work"})
			return l, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		v.Store(nil)
		<-call.done
		if got := c.came(); len(got) != 0 || call.err == nil || !strings.Contains(call.err.Error(), permission.OnPage) {
			t.Errorf("ran %v, %v", got, call.err)
		}
	})
}
