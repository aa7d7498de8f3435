package asking

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/tool"
)

var decide = tool.Question{Title: "Allow?", Fields: []tool.Field{
	{Name: "decision", Choices: []string{"allow once", "deny"}}, {Name: "reason"},
}}

// A deskCase is a Desk in a bubble of time with one question of ann's.
type deskCase struct {
	*Desk
	said   chan *Said
	cancel context.CancelFunc
	gone   chan struct{}
}

func inBubble(t *testing.T, always bool, life time.Duration, test func(t *testing.T, c *deskCase)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := &deskCase{Desk: NewDesk(always, func(string, map[string]any) {}), said: make(chan *Said, 1), cancel: cancel,
			gone: make(chan struct{})}
		defer cancel()
		c.Serve("http://127.0.0.1:7433/")
		go func() { c.said <- c.Put(ctx, Waiting{Principal: "ann", Question: decide}, life, c.gone) }()
		synctest.Wait()
		test(t, c)
	})
}

// waitsFor is the one question of a principal.
func (c *deskCase) waitsFor(t *testing.T, who string) Waiting {
	t.Helper()
	list, _, _ := c.Of(who, false)
	if len(list) != 1 {
		t.Fatalf("%d questions wait for %s", len(list), who)
	}
	return list[0]
}

// ends fails unless the question ends without an answer, after so long.
func (c *deskCase) ends(t *testing.T, after time.Duration) {
	t.Helper()
	began := time.Now()
	if said := <-c.said; said != nil || time.Since(began) != after {
		t.Errorf("%+v after %s, want none after %s", said, time.Since(began), after)
	}
	if list, _, _ := c.Of("", true); len(list) != 0 {
		t.Errorf("%d questions still wait", len(list))
	}
}

// TestDeskAnswer: one answer counts, and none of another person.
func TestDeskAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, false, time.Hour, func(t *testing.T, c *deskCase) {
		id := c.waitsFor(t, "ann").ID
		if list, _, _ := c.Of("bob", false); len(list) != 0 {
			t.Errorf("bob sees %d questions of ann's", len(list))
		}
		for _, try := range []struct {
			id, by, decision string
			admin            bool
			want             error
		}{
			{id, "bob", "allow once", false, ErrOver},
			{id, "", "allow once", false, ErrOver},
			{"", "ann", "allow once", false, ErrOver},
			{"0" + id[1:], "ann", "allow once", true, ErrOver},
			{id, "ann", "allow", false, ErrChoice},
			{id, "ann", "", false, ErrChoice},
			{id, "root", "Allow once", true, ErrChoice},
			{id, "root", "deny", true, nil},
			{id, "ann", "allow once", false, ErrOver},
		} {
			if err := c.Answer(try.id, try.by, try.admin, map[string]string{"decision": try.decision}); !errors.Is(err, try.want) {
				t.Errorf("%+v: %v", try, err)
			}
		}
		if said := <-c.said; said == nil || said.Content.(map[string]any)["decision"] != "deny" {
			t.Errorf("%+v", said)
		}
	})
}

// TestDeskEnds: a question ends when its time is over, its call is withdrawn, its client leaves or the server ends.
func TestDeskEnds(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct {
		end   func(c *deskCase)
		after time.Duration
	}{
		"its time":   {func(*deskCase) {}, 10 * time.Minute},
		"withdrawn":  {func(c *deskCase) { c.cancel() }, 0},
		"the client": {func(c *deskCase) { close(c.gone) }, 0},
		"the server": {func(c *deskCase) { c.Serve("") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, false, 10*time.Minute, func(t *testing.T, c *deskCase) {
				id := c.waitsFor(t, "ann").ID
				how.end(c)
				c.ends(t, how.after)
				if err := c.Answer(id, "ann", true, map[string]string{"decision": "allow once"}); !errors.Is(err, ErrOver) {
					t.Errorf("an answer afterwards: %v", err)
				}
			})
		})
	}
}

// TestDeskUnseen: who closed the page just before the question came does not hold the call up for long, unless the
// operator wants it to wait.
func TestDeskUnseen(t *testing.T) {
	t.Parallel()
	inBubble(t, false, 10*time.Minute, func(t *testing.T, c *deskCase) { c.ends(t, unseenTime) })
	inBubble(t, true, 10*time.Minute, func(t *testing.T, c *deskCase) { c.ends(t, 10*time.Minute) })
}

// TestDeskOpen: a page is open while a request of it waits, and a little longer.
func TestDeskOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := NewDesk(false, nil)
		is := func(who string, want bool) {
			t.Helper()
			if _, open := d.Page(who); open != want {
				t.Errorf("the page of %s is open: %t", who, open)
			}
		}
		end := d.Open("ann")
		is("ann", false) // it is served nowhere
		d.Serve("http://127.0.0.1:7433/")
		time.Sleep(time.Hour)
		is("ann", true)
		is("bob", false)
		second := d.Open("ann")
		end()
		end() // the second time it does nothing
		time.Sleep(time.Hour)
		is("ann", true)
		second()
		is("ann", true)
		time.Sleep(linger)
		is("ann", false)
		d.Serve("")
		is("ann", false)
	})
	var none *Desk
	if url, open := none.Page("ann"); url != "" || open {
		t.Error("no Desk has a page")
	}
	none.Serve("http://127.0.0.1:7433/")
}

// TestDeskFull: one principal does not fill the page of others.
func TestDeskFull(t *testing.T) {
	t.Parallel()
	inBubble(t, true, time.Hour, func(t *testing.T, c *deskCase) {
		for range mostWaiting - 1 {
			go c.Put(t.Context(), Waiting{Principal: "ann", Question: decide}, time.Minute, nil)
		}
		synctest.Wait()
		if said := c.Put(t.Context(), Waiting{Principal: "ann", Question: decide}, time.Minute, nil); said != nil {
			t.Errorf("%+v", said)
		}
		if list, _, _ := c.Of("ann", false); len(list) != mostWaiting {
			t.Errorf("%d wait", len(list))
		}
		go c.Put(t.Context(), Waiting{Principal: "bob", Question: decide}, time.Minute, nil)
		synctest.Wait()
		c.waitsFor(t, "bob")
		time.Sleep(time.Hour)
	})
}

// BenchmarkDeskPage is what a call costs whose client cannot ask, while nobody has the page open.
func BenchmarkDeskPage(b *testing.B) {
	d := NewDesk(false, nil)
	d.Serve("http://127.0.0.1:7433/")
	b.ReportAllocs()
	for b.Loop() {
		if _, open := d.Page("ann"); open {
			b.Fatal("open")
		}
	}
}

// TestDeskTells: of each question that begins to wait somebody is told once, with the address of the page; of one too many
// nobody is.
func TestDeskTells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := NewDesk(true, func(string, map[string]any) {})
		told := make(chan Waiting, mostWaiting+1)
		d.Told = func(w Waiting, url string) {
			if url != "http://127.0.0.1:7433/" || w.Until.Sub(w.Since) != time.Hour || w.ID == "" {
				t.Errorf("told of %+v at %q", w, url)
			}
			if n := w.Notice(url); n.Title != "Allow?" || n.Principal != "ann" || n.URL != url || !n.Until.Equal(w.Until) {
				t.Errorf("the notice is %+v", n)
			}
			told <- w
		}
		d.Serve("http://127.0.0.1:7433/")
		for range mostWaiting + 1 {
			go d.Put(t.Context(), Waiting{Principal: "ann", Question: decide}, time.Hour, nil)
		}
		synctest.Wait()
		if len(told) != mostWaiting {
			t.Errorf("told of %d questions, want %d", len(told), mostWaiting)
		}
		d.Serve("")
	})
}
