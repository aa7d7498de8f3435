package search

import (
	"errors"
	"sync"
	"testing"
)

func TestLineFilter(t *testing.T) {
	t.Parallel()
	f, err := NewLineFilter(`^größe \w+$`)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for line, want := range map[string]bool{"größe é": true, "größe é\n": true, "größe é\r\n": true, "größe \xff": false, "x größe é": false, "": false} {
				if got := f.Match([]byte(line)); got != want {
					t.Errorf("%q: %v, want %v", line, got, want)
				}
			}
		})
	}
	all.Wait()
	if _, err := NewLineFilter("a(?=b)"); err == nil {
		t.Error("a look-ahead compiles, want an error")
	} else if bad, ok := errors.AsType[*PatternError](err); !ok || bad.Kind != "look-around" {
		t.Errorf("got %v, want a PatternError about look-around", err)
	}
}
