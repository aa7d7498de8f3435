package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// newEvents returns events of a test, with what is in their file.
func newEvents(t *testing.T, filter string) (*events, func() string) {
	t.Helper()
	var re LineFilter
	if filter != "" {
		re = regexp.MustCompile(filter)
	}
	e, err := openEvents(filepath.Join(t.TempDir(), "job_aaaaaaaaaaaa"), re)
	must(t, err)
	t.Cleanup(func() { _ = e.file.Close() })
	return e, func() string {
		text, err := os.ReadFile(e.path)
		must(t, err)
		return string(text)
	}
}

// A line that was printed in pieces is one event, and is told of 200 ms after it ended.
func TestEventsComeInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, file := newEvents(t, "")
		var pos int64
		print := func(text string) { e.add(pos, []byte(text)); pos += int64(len(text)) }
		print("on")
		time.Sleep(time.Minute)
		if !e.flush(false) || file() != "" {
			t.Errorf("half a line is no event: %q", file())
		}
		print("e\r\ntw")
		more := e.longer(0)
		time.Sleep(eventBatch - time.Millisecond)
		print("o\n")
		if e.flush(false); file() != "" {
			t.Errorf("too early: %q", file())
		}
		time.Sleep(time.Millisecond)
		if e.flush(false); file() != "one\ntwo\n" {
			t.Errorf("one batch: %q", file())
		}
		select {
		case <-more:
		default:
			t.Error("who waits for the first event is not told")
		}
		if e.longer(8) == nil || e.longer(7) != nil {
			t.Error("what is new is not told from what is known")
		}
		e.add(0, []byte("one\r\ntwo\n")) // a log that could not be written is tried again
		print("last")
		e.close()
		if file() != "one\ntwo\nlast\n" {
			t.Errorf("at the end: %q", file())
		}
	})
}

func TestEventsAreFiltered(t *testing.T) {
	t.Parallel()
	e, file := newEvents(t, "^ERROR|é$")
	e.add(0, []byte("INFO ERROR\nERROR a\n\ncafé\r\nERROR b"))
	e.close()
	if total, fault := e.sum(); file() != "ERROR a\ncafé\nERROR b\n" || total != 3 || fault != "" {
		t.Errorf("%d events, %s: %q", total, fault, file())
	}
}

func TestLongEventsAreCut(t *testing.T) {
	t.Parallel()
	e, file := newEvents(t, "")
	text := strings.Repeat("é", maxEvent) + "\nshort\n"
	for at := range len(text) { // in the smallest pieces
		e.add(int64(at), []byte(text[at:at+1]))
	}
	e.add(int64(len(text)+10), []byte("after a gap\n"))
	e.close()
	if want := strings.Repeat("é", maxEvent/2) + " …\nshort\nafter a gap\n"; file() != want {
		t.Errorf("%d bytes, want %d: ...%q", len(file()), len(want), file()[max(0, len(file())-40):])
	}
}

// 500 events in any 60 s are kept, also over an hour; one more ends the monitor, and none of the 500 is lost.
func TestChattyIsOneEventTooMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, file := newEvents(t, "")
		var pos int64
		n := 0
		print := func() bool {
			n++
			line := fmt.Appendf(nil, "%d\n", n)
			e.add(pos, line)
			pos += int64(len(line))
			return e.flush(false)
		}
		for range 60 * maxEvents {
			time.Sleep(eventSpan / maxEvents)
			if !print() {
				t.Fatalf("ended at event %d", n)
			}
		}
		time.Sleep(eventSpan)
		e.flush(false)
		for range maxEvents {
			if !print() {
				t.Fatalf("ended at event %d of a burst", n)
			}
		}
		before := n
		time.Sleep(eventSpan - time.Nanosecond)
		if print() {
			t.Error("501 events in a minute are not too many")
		}
		e.close()
		lines := strings.Split(strings.TrimSuffix(file(), "\n"), "\n")
		if len(lines) != before {
			t.Fatalf("%d events are kept of %d", len(lines), before)
		}
		for i, line := range lines {
			if line != fmt.Sprint(i+1) {
				t.Fatalf("event %d is %q", i+1, line)
			}
		}
	})
}

// The session is told of new events once a minute, by one call, and only if there are others.
func TestEventsAreToldOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEvents(t, "")
		s := &Shell{jobs: map[string]*Job{"job_a": {id: "job_a", output: &output{events: e}, info: Info{ID: "job_a", State: Running}}}}
		told := func() (n int) {
			for _, i := range s.Eventful() {
				if s.Note(i.ID, i.Events) {
					n += i.Events
				}
				if s.Note(i.ID, i.Events) {
					t.Error("two calls tell of the same events")
				}
			}
			return n
		}
		add := func(pos int64) {
			e.add(pos, []byte("x\n"))
			time.Sleep(eventBatch)
			e.flush(false)
		}
		if n := told(); n != 0 {
			t.Errorf("told of %d before there are any", n)
		}
		add(0)
		if n := told(); n != 1 {
			t.Errorf("told of %d, want 1", n)
		}
		add(2)
		time.Sleep(noteEvery - eventBatch - time.Millisecond)
		if n := told(); n != 0 {
			t.Errorf("told of %d within a minute", n)
		}
		time.Sleep(time.Millisecond)
		if n := told(); n != 2 {
			t.Errorf("told of %d after a minute, want 2 in all", n)
		}
		time.Sleep(time.Hour)
		if n := told(); n != 0 {
			t.Errorf("told of %d again", n)
		}
	})
}

func (s stage) monitor(t *testing.T, text, filter string) *Job {
	t.Helper()
	m := &Monitor{}
	if filter != "" {
		m.Filter = regexp.MustCompile(filter)
	}
	return s.start(t, Command{Text: text, Background: true, Timeout: hang, Monitor: m})
}

func TestMonitor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.monitor(t, "echo a1; echo b >&2; echo c; until [ -e go ]; do :; done; echo a2; echo no >&2; exit 4", "^a")
	i, err := s.AwaitNew(t.Context(), j.id, 0, never)
	must(t, err)
	c, err := s.Output(t.Context(), j.id, 0, 100)
	must(t, err)
	if i.State != Running || c.Head != "a1\n" || c.Lines != 1 || c.Info.Events != 1 || !c.Info.Monitor {
		t.Errorf("the first event: %s, %+v", i.State, c)
	}
	if i, err := s.AwaitNew(t.Context(), j.id, c.Next, time.Now()); err != nil || i.State != Running {
		t.Errorf("nothing new: %s, %v", i.State, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.AwaitNew(ctx, j.id, c.Next, never); err != context.Canceled {
		t.Errorf("a call that is cancelled: %v", err)
	}
	s.file(t, "go")
	i, err = s.Await(t.Context(), j.id, never)
	must(t, err)
	next, err := s.Output(t.Context(), j.id, c.Next, 100)
	must(t, err)
	if next.Head != "a2\n" || i.State != Failed || i.Exit != 4 || i.Events != 2 || i.LastErr != "no" {
		t.Errorf("the end: %+v, %+v", next, i)
	}
	if log, _ := os.ReadFile(i.Log); strings.Count(string(log), "\n") != 5 {
		t.Errorf("the log has all that was printed: %q", log)
	}

	// Another process of the session reads the same.
	waitFor(t, "the record is written", func() bool {
		i, err := s.load(t.Context(), j.id)
		return err == nil && i.State == Failed
	})
	must(t, s.Close())
	later := stageOn(t, s.board, s.Shell.dir)
	old, err := later.Output(t.Context(), j.id, c.Next, 100)
	must(t, err)
	if old.Head != "a2\n" || old.Lines != 1 || old.Info.Events != 2 {
		t.Errorf("read later: %+v", old)
	}
	if i, err := later.AwaitNew(t.Context(), j.id, 0, never); err != nil || i.State != Failed {
		t.Errorf("awaited later: %s, %v", i.State, err)
	}
}

func TestChattyMonitor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	word := sleepFor()
	j := s.monitor(t, "seq 100000; sleep "+word, "")
	i, err := s.Await(t.Context(), j.id, never)
	must(t, err)
	c, err := s.Output(t.Context(), j.id, 0, 1<<20)
	must(t, err)
	if i.State != Chatty || i.Events != maxEvents || c.Lines != maxEvents || !strings.HasSuffix(c.Head, "\n500\n") {
		t.Errorf("%s with %d events, %d lines", i.State, i.Events, c.Lines)
	}
	noneAlive(t, word)
}

// Of a monitor whose server was killed the events can be read, as many as there are.
func TestLostMonitor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	r := record{Owner: "999999999.1", Info: Info{ID: "job_aaaaaaaaaaaa", State: Running, Background: true, Start: time.Now()}}
	r.Monitor = true
	must(t, os.MkdirAll(s.Shell.dir, 0o700))
	for suffix, text := range map[string]string{logSuffix: "a\nb\nc\n", eventSuffix: "a\nc\n"} {
		must(t, os.WriteFile(filepath.Join(s.Shell.dir, r.ID+suffix), []byte(text), 0o600))
	}
	s.put(t, r)
	c, err := s.Output(t.Context(), r.ID, 0, 100)
	must(t, err)
	if c.Head != "a\nc\n" || c.Info.State != Lost || c.Info.Events != 2 || c.Info.Lines != 3 {
		t.Errorf("%+v", c)
	}
	s.forget(t.Context(), r.ID)
	if files := s.files(t); len(files) > 0 {
		t.Errorf("forgotten, but left: %v", files)
	}
}
