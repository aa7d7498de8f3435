package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// readLines returns what a LineReader finds in data: each line, or "LONG id".
func readLines(t testing.TB, r io.Reader, max int) []string {
	t.Helper()
	l := NewLineReader(r, max)
	var lines []string
	for {
		one, err := l.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			return lines
		}
		if one.Long {
			lines = append(lines, "LONG "+string(one.ID))
		} else {
			lines = append(lines, string(one.Bytes))
		}
	}
}

func TestLineReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"lines", "a\nb\n", []string{"a", "b"}},
		{"no newline at the end", "a\nb", []string{"a", "b"}},
		{"blanks and CR", " a \r\n\r\n\tb\t\n", []string{"a", "", "b"}},
		{"a mark before the first line only", "\ufeffa\n\ufeffb\n", []string{"a", "\ufeffb"}},
		{"at the limit", strings.Repeat("x", 64) + "\r\ny\n", []string{strings.Repeat("x", 64), "y"}},
		{"over the limit", strings.Repeat("x", 65) + "\ny\n", []string{"LONG ", "y"}},
		{"over the limit, id last", `{"p":"` + strings.Repeat("x", 200) + `","id":7}` + "\n{}\n", []string{"LONG 7", "{}"}},
		{"over the limit at the end", `{"id":"a","p":"` + strings.Repeat("x", 200), []string{`LONG "a"`}},
		{"longer than the buffer", strings.Repeat("x", 200_000) + "\ny\n", []string{"LONG ", "y"}},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
			if got := readLines(t, r, 64); strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		}
	}
}

// FuzzLineReader: whatever comes in whatever pieces, the lines are those that splitting at newlines gives.
func FuzzLineReader(f *testing.F) {
	for _, s := range []string{"", "a\nb", "\xef\xbb\xbfa\r\n\n", strings.Repeat("x", 100) + "\n{}", "\n\n \n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 50
		type expected struct {
			text         string
			long, either bool // either: blanks around a value may count or not
		}
		var want []expected
		rest := data
		for i := 0; len(rest) > 0; i++ {
			var one []byte
			one, rest, _ = bytes.Cut(rest, []byte("\n"))
			raw := len(one)
			if i == 0 {
				one = bytes.TrimPrefix(one, []byte("\xef\xbb\xbf"))
			}
			one = bytes.Trim(one, " \t\r\n")
			want = append(want, expected{string(one), len(one) > limit, len(one) <= limit && raw > limit})
		}
		for _, r := range []io.Reader{bytes.NewReader(data), iotest.OneByteReader(bytes.NewReader(data))} {
			l := NewLineReader(r, limit)
			for i, w := range want {
				got, err := l.Next()
				switch {
				case err != nil:
					t.Fatalf("line %d: %v", i, err)
				case got.Long && (w.long || w.either):
				case got.Long || w.long || string(got.Bytes) != w.text:
					t.Fatalf("line %d is %q (too long: %v), want %q (too long: %v)", i, got.Bytes, got.Long, w.text, w.long)
				}
			}
			if got, err := l.Next(); !errors.Is(err, io.EOF) {
				t.Fatalf("after the last line: %q, %v", got.Bytes, err)
			}
		}
	})
}

// TestLineWriterGivesUp: a progress note does not wait for a client that does not read, and after a write error
// no writer waits.
func TestLineWriterGivesUp(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	lw := NewLineWriter(w, ProgressPatience)
	first := make(chan error, 1)
	go func() { first <- lw.WriteLine([]byte("held\n"), 0, nil) }()
	for len(lw.turn) > 0 { // until the first write holds the turn
		runtime.Gosched()
	}
	if err := lw.WriteLine([]byte("note\n"), time.Millisecond, nil); !errors.Is(err, errBusyLine) {
		t.Errorf("a note: %v", err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- lw.WriteLine([]byte("answer\n"), 0, nil) }()
	_ = r.CloseWithError(errors.New("gone"))
	for _, c := range []chan error{first, waiting} {
		if err := <-c; err == nil {
			t.Error("a write to a closed pipe went through")
		}
	}
	<-lw.Failed
}
