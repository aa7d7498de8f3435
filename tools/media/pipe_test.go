package media

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// printedPipe is a pipe into which a program has printed a text.
func printedPipe(t *testing.T, text string) *pipe {
	t.Helper()
	p := newPipe(1 << 10)
	t.Cleanup(p.close)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.write.WriteString(text); err != nil { // it has room
		t.Fatal(err)
	}
	return p
}

// A page had no text, or half of it: what should read it had no processor until its deadline had passed, and took that for
// the end.
func TestPipeReadLate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("pipes have no deadlines")
	}
	want := strings.Repeat("text\n", 200)
	p := printedPipe(t, want)
	if err := p.read.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	p.begin()
	for len(p.done) == 0 { // all would set another deadline
		runtime.Gosched()
	}
	if text, long, err := p.all(); string(text) != want || long || err != nil {
		t.Errorf("%d bytes, %v, %v, want %d", len(text), long, err, len(want))
	}
}

// A text that could not be read is not one that is short.
func TestPipeUnread(t *testing.T) {
	t.Parallel()
	p := printedPipe(t, "text\n")
	_ = p.read.Close()
	p.begin()
	if _, _, err := p.all(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v, want os.ErrClosed", err)
	}
}
