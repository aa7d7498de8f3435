package progress

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTicker: the first note at once, then the newest of each window, the pending one before the end; a silent call
// is said to be running, and the value always grows.
func TestTicker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the sender goes on while the test reads
		var all []Note
		tick := Start(0, func(n Note) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, n)
		})
		notes := func() []Note {
			mu.Lock()
			defer mu.Unlock()
			return all
		}
		begin := time.Now()
		tick.Set(1, 10, "one")
		synctest.Wait()
		sent := notes()
		if len(sent) != 1 || sent[0].text != "one" || !time.Now().Equal(begin) {
			t.Fatalf("the first note is not sent at once: %v", sent)
		}
		for i := 2; i <= 9; i++ {
			tick.Set(float64(i), 10, "more")
		}
		synctest.Wait()
		sent = notes()
		if len(sent) != 1 {
			t.Fatalf("notes within the window: %v", sent)
		}
		time.Sleep(noteEvery)
		synctest.Wait()
		sent = notes()
		if len(sent) != 2 || sent[1].done != 9 {
			t.Fatalf("after the window: %v", sent)
		}
		time.Sleep(12 * time.Second)
		synctest.Wait()
		sent = notes()
		if len(sent) != 3 || !strings.HasPrefix(sent[2].text, "still running, 10 s: more") {
			t.Fatalf("heartbeat: %v", sent)
		}
		tick.Set(1, 10, "back")
		tick.Stop()
		sent = notes()
		if last := sent[len(sent)-1]; last.text != "back" {
			t.Fatalf("the pending note is lost: %v", sent)
		}
		if !slices.IsSortedFunc(sent, func(a, b Note) int {
			if a.done < b.done {
				return -1
			}
			return 1
		}) {
			t.Errorf("values do not grow: %v", sent)
		}
	})
}

// TestTickerHeld: over HTTP the first note waits a little, and what is said meanwhile is not lost.
func TestTickerHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the sender goes on while the test reads
		var all []string
		note := func(n Note) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, n.text)
		}
		notes := func() []string {
			mu.Lock()
			defer mu.Unlock()
			was := all
			all = nil
			return was
		}
		tick := Start(StreamHold, note)
		tick.Set(0, 0, "first")
		tick.Set(1, 0, "second")
		tick.Set(2, 0, "third")
		time.Sleep(StreamHold - time.Millisecond)
		synctest.Wait()
		if early := notes(); len(early) != 0 {
			t.Errorf("too early: %q", early)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := fmt.Sprint(notes()); got != "[first third]" {
			t.Errorf("then: %s", got)
		}
		tick.Stop()
		began := time.Now()
		tick = Start(StreamHold, note)
		tick.Set(0, 0, "first")
		tick.Set(1, 0, "last")
		tick.Stop()
		if got := fmt.Sprint(notes()); got != "[first last]" || !time.Now().Equal(began) {
			t.Errorf("a short call: %s after %v", got, time.Since(began))
		}
	})
}

// TestTickerWhole: people are shown the numbers of notes, so none has a fraction, and none goes beyond its total. What is
// said twice in a row is sent once.
func TestTickerWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all []Note
		tick := Start(0, func(n Note) { all = append(all, n) })
		for _, n := range []Note{{0, 0, "Searching x"}, {0, 0, "Searching x"}, {3.001933414, 0, "3 s"}, {3.9, 4.5, "the same second"}, {1, 4, "back"}, {1, 4, "back"}} {
			tick.Set(n.done, n.total, n.text)
			time.Sleep(noteEvery)
			synctest.Wait()
		}
		tick.Stop()
		if got := fmt.Sprint(all); got != "[{0 0 Searching x} {3 0 3 s} {4 4 the same second} {5 0 back}]" {
			t.Errorf("sent %s", got)
		}
	})
}

// TestOneLine: a note is one line of at most 200 characters.
func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"a\nb\r\nc":              "a b c",
		strings.Repeat("é", 300): strings.Repeat("é", 199) + "…",
		strings.Repeat("é", 200): strings.Repeat("é", 200),
	} {
		if got := oneLine(in); got != want {
			t.Errorf("oneLine(%.20q) = %.20q", in, got)
		}
	}
}
