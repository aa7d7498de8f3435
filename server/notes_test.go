package server

import (
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
		var all []progressNote
		tick := startTicker(10*time.Second, func(n progressNote) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, n)
		})
		notes := func() []progressNote {
			mu.Lock()
			defer mu.Unlock()
			return all
		}
		begin := time.Now()
		tick.set(1, 10, "one")
		synctest.Wait()
		sent := notes()
		if len(sent) != 1 || sent[0].text != "one" || !time.Now().Equal(begin) {
			t.Fatalf("the first note is not sent at once: %v", sent)
		}
		for i := 2; i <= 9; i++ {
			tick.set(float64(i), 10, "more")
		}
		synctest.Wait()
		sent = notes()
		if len(sent) != 1 {
			t.Fatalf("notes within the window: %v", sent)
		}
		time.Sleep(progressEvery)
		synctest.Wait()
		sent = notes()
		if len(sent) != 2 || sent[1].done != 9 {
			t.Fatalf("after the window: %v", sent)
		}
		time.Sleep(12 * time.Second)
		synctest.Wait()
		sent = notes()
		if len(sent) != 3 || !strings.HasPrefix(sent[2].text, "still running, 10s: more") {
			t.Fatalf("heartbeat: %v", sent)
		}
		tick.set(1, 10, "back")
		tick.stop()
		sent = notes()
		if last := sent[len(sent)-1]; last.text != "back" {
			t.Fatalf("the pending note is lost: %v", sent)
		}
		if !slices.IsSortedFunc(sent, func(a, b progressNote) int {
			if a.done < b.done {
				return -1
			}
			return 1
		}) {
			t.Errorf("values do not grow: %v", sent)
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
