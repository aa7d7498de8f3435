package workspace

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

// A directory is swapped with an outward link, and with a link to another directory inside, while it is read and
// written: no read sees what is outside, and nothing is made there (SEC-02).
func TestSwapDuringCalls(t *testing.T) {
	const rounds = 2000
	f := newFixture(t)
	f.write(t, "ws/swap/x.txt", "inside")
	f.link(t, "ws/out", "TOP/outside")
	f.link(t, "ws/in", "dir")

	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			link := []string{"ws/out", "ws/in"}[i%2]
			// Each step may meet the reader anywhere; a failed one only makes a duller round.
			_ = os.Rename(f.path("ws/swap"), f.path("ws/real"))
			_ = os.Rename(f.path(link), f.path("ws/swap"))
			_ = os.Rename(f.path("ws/swap"), f.path(link))
			_ = os.Rename(f.path("ws/real"), f.path("ws/swap"))
		}
	})
	seen := map[string]int{}
	for range rounds {
		text, err := f.read("swap/x.txt")
		if strings.Contains(text, secret) {
			t.Fatal("a read saw what is outside")
		}
		seen["read "+kind(err)]++

		p, err := f.Open("swap/new/file.txt", Write)
		seen["write "+kind(err)]++
		if err != nil {
			continue
		}
		if w, err := p.Dir.OpenFile("made.txt", os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, _ = io.WriteString(w, "x")
			_ = w.Close()
		}
		_ = p.Dir.Close()
	}
	close(stop)
	swapper.Wait()
	entries, err := os.ReadDir(f.path("outside"))
	if err != nil || len(entries) != 2 {
		t.Errorf("outside has changed: %v, %v", entries, err)
	}
	if seen["read ok"] == 0 || seen["read ok"] == rounds {
		t.Logf("the swaps and the calls hardly met: %v", seen)
	}
}

// The root itself is swapped with a link while it is used.
func TestSwapOfARoot(t *testing.T) {
	const rounds = 500
	f := newFixture(t)
	f.write(t, "ws/x.txt", "inside")
	f.link(t, "link", "TOP/outside")
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(f.path("ws"), f.path("real"))
			_ = os.Rename(f.path("link"), f.path("ws"))
			_ = os.Rename(f.path("ws"), f.path("link"))
			_ = os.Rename(f.path("real"), f.path("ws"))
		}
	})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for range rounds {
				if text, _ := f.read("x.txt"); strings.Contains(text, secret) {
					t.Error("a read saw what is outside")
					return
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	swapper.Wait()
}
