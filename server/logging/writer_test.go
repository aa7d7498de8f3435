package logging

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A stream keeps what each Write gave it.
type stream struct {
	mu     sync.Mutex
	writes []string
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, string(p))
	return len(p), nil
}

// TestWriter: a stream that takes bytes gets every line, in order and by one Write each, however many goroutines write.
func TestWriter(t *testing.T) {
	t.Parallel()
	const writers, lines = 4, 500
	s := &stream{}
	w := NewWriter(s)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			b := []byte{}
			for j := range lines {
				b = fmt.Appendf(b[:0], "%d %d\n", i, j) // the bytes are ours again after each Write
				if n, err := w.Write(b); n != len(b) || err != nil {
					t.Errorf("Write: %d, %v", n, err)
				}
			}
		})
	}
	all.Wait()
	w.mu.Lock()
	idle := w.idle
	w.mu.Unlock()
	if idle != nil {
		<-idle
	}
	w.Flush()
	next := [writers]int{}
	for _, line := range s.writes {
		var i, j int
		if n, err := fmt.Sscanf(line, "%d %d\n", &i, &j); n != 2 || err != nil || line != fmt.Sprintf("%d %d\n", i, j) || next[i] != j {
			t.Fatalf("%q is not the next line of its writer", line)
		}
		next[i]++
	}
	if len(s.writes) != writers*lines {
		t.Errorf("%d lines, want %d", len(s.writes), writers*lines)
	}
}

// A blocked stream blocks no call. It did: client programs that never read standard error held every call.
func TestWriterStandsStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		r, stream := io.Pipe()
		w := NewWriter(stream)
		line := strings.Repeat("x", 1023) + "\n"
		const lines = 3 * maxQueued / 1024
		for range lines {
			if n, err := io.WriteString(w, line); n != len(line) || err != nil {
				t.Fatalf("Write: %d, %v", n, err)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("writing took %v", took)
		}
		w.Flush()
		if took := time.Since(begin); took != lookEvery*maxLooks {
			t.Errorf("the end was waited for %v, want %v", took, lookEvery*maxLooks)
		}

		in := bufio.NewScanner(r)
		for i := range maxQueued / len(line) {
			if !in.Scan() || in.Text()+"\n" != line {
				t.Fatalf("line %d: %q, %v", i, in.Text(), in.Err())
			}
		}
		want := fmt.Sprintf(`^time=\S+ level=WARN msg="log lines dropped: .*" lines=%d$`, lines-maxQueued/len(line))
		if !in.Scan() || !regexp.MustCompile(want).MatchString(in.Text()) {
			t.Errorf("the line at the gap is %q, want %s", in.Text(), want)
		}
		io.WriteString(w, "after\n")
		if !in.Scan() || in.Text() != "after" {
			t.Errorf("after the gap comes %q", in.Text())
		}
		synctest.Wait()
		if w.idle != nil || w.queued != 0 || w.dropped != 0 {
			t.Errorf("%d bytes and %d dropped lines are left", w.queued, w.dropped)
		}
	})
}

// The end of a slow stream is waited for as long as it takes lines.
func TestFlushSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, stream := io.Pipe()
		w := NewWriter(stream)
		const lines = 30
		for range lines {
			io.WriteString(w, "line\n")
		}
		var got bytes.Buffer
		go func() {
			for range lines {
				time.Sleep(lookEvery * (maxLooks - 2))
				io.CopyN(&got, r, 5)
			}
		}()
		w.Flush()
		synctest.Wait()
		if want := strings.Repeat("line\n", lines); got.String() != want {
			t.Errorf("%d bytes were written when Flush returned, want %d", got.Len(), len(want))
		}
	})
}

// Flush waits for what was there, and not for lines that come later.
func TestFlushBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, stream := io.Pipe()
		w := NewWriter(stream)
		io.WriteString(w, "line\n")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for b := make([]byte, 5); ; time.Sleep(lookEvery / 2) {
				io.WriteString(w, "more\n")
				if _, err := io.ReadFull(r, b); err != nil {
					return
				}
			}
		}()
		w.Flush()
		r.Close()
		<-ended
	})
}

// A line that is longer than all room is written if it is alone: else the drop of it would never be told.
func TestWriterLongLine(t *testing.T) {
	t.Parallel()
	s := &stream{}
	w := NewWriter(s)
	w.Write(make([]byte, 2*maxQueued))
	w.mu.Lock()
	idle := w.idle
	w.mu.Unlock()
	if idle != nil {
		<-idle
	}
	if len(s.writes) != 1 || len(s.writes[0]) != 2*maxQueued {
		t.Errorf("%d lines were written", len(s.writes))
	}
}

// A regular file has each line when the call that logs it returns, whether it is standard error or log.file.
func TestRegularFile(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"stream", "file"} {
		name := filepath.Join(t.TempDir(), "log")
		var w io.Writer
		file := name
		if by == "stream" {
			f, err := os.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			w, file = NewWriter(f), ""
		}
		log, err := New(w, file, slog.LevelWarn)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("left out")
		log.Warn("kept")
		if b, err := os.ReadFile(name); err != nil || !regexp.MustCompile(`^time=\S+ level=WARN msg=kept\n$`).Match(b) {
			t.Errorf("%s: %q, %v", by, b, err)
		}
	}
}
