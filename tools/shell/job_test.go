package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestJobFromStartToEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.start(t, Command{Text: "echo one; until [ -e go ]; do :; done; echo two; exit 3", Background: true})
	i := j.Info()
	if !regexp.MustCompile(`^job_[a-z2-7]{12}$`).MatchString(i.ID) || i.State != Running || !i.Background {
		t.Errorf("started as %+v", i)
	}
	s.printed(t, j, "one\n")
	first, err := s.Output(t.Context(), i.ID, 0, 100)
	must(t, err)
	if log, _ := os.ReadFile(i.Log); string(log) != "one\n" {
		t.Errorf("the log of a running job holds %q", log)
	}
	if nothing, err := s.Output(t.Context(), i.ID, first.Next, 100); err != nil || nothing.Size != 0 || nothing.Head != "" {
		t.Errorf("nothing new: %+v, %v", nothing, err)
	}
	if i, err := s.Await(t.Context(), i.ID, time.Now()); err != nil || i.State != Running {
		t.Errorf("Await at once: %s, %v", i.State, err)
	}
	s.file(t, "go")
	i, err = s.Await(t.Context(), i.ID, never)
	must(t, err)
	second, err := s.Output(t.Context(), i.ID, first.Next, 100)
	must(t, err)
	if second.Head != "two\n" || second.Lines != 1 || second.Size != 4 || second.Info.State != Failed || second.Info.Exit != 3 {
		t.Errorf("the rest: %+v", second)
	}
	j.Release() // a job stays
	list, err := s.List(t.Context())
	must(t, err)
	if len(list) != 1 || list[0].ID != i.ID || list[0].State != Failed {
		t.Errorf("List: %+v", list)
	}
	if i, err := s.Stop(t.Context(), i.ID); err != nil || i.State != Failed {
		t.Errorf("Stop of a job that is over: %s, %v", i.State, err)
	}
}

// A call that ends, or whose client goes away, does not end a job.
func TestJobOutlivesItsCall(t *testing.T) {
	t.Parallel()
	for _, detach := range []bool{false, true} {
		s := newStage(t)
		ctx, cancel := context.WithCancel(t.Context())
		root, err := os.OpenRoot(s.dir)
		must(t, err)
		j, err := s.Start(ctx, Command{Text: "echo ready; until [ -e go ]; do :; done", Dir: root, Background: !detach, Timeout: hang})
		must(t, err)
		must(t, root.Close())
		s.printed(t, j, "ready")
		if detach {
			if i := j.Detach(time.Hour); i.State != Running || !i.Background {
				t.Errorf("detached: %+v", i)
			}
		}
		cancel()
		if i, err := j.Wait(ctx, never); !errors.Is(err, context.Canceled) || i.State != Running {
			t.Errorf("detach %t: %s, %v", detach, i.State, err)
		}
		j.Release()
		s.file(t, "go")
		if i, err := s.Await(t.Context(), j.id, never); err != nil || i.State != Completed {
			t.Errorf("detach %t: %s, %v", detach, i.State, err)
		}
		if list, err := s.List(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("detach %t: List %v, %v", detach, list, err)
		}
	}
}

func TestDetach(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.start(t, Command{Text: "sleep 1000", Timeout: time.Hour})
	j.Detach(time.Millisecond)
	if i, err := s.Await(t.Context(), j.id, never); err != nil || i.State != TimedOut {
		t.Errorf("a new lifetime: %s, %v", i.State, err)
	}
	over := s.start(t, Command{Text: "true"})
	_, err := over.Wait(t.Context(), never)
	must(t, err)
	if i := over.Detach(time.Hour); i.Background || i.State != Completed {
		t.Errorf("a command that is over became a job: %+v", i)
	}
	over.Release()
}

func TestStop(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	word := sleepFor()
	j := s.start(t, Command{Text: "(setsid sleep " + word + " &); echo ready; sleep " + word, Background: true})
	s.printed(t, j, "ready")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if i, err := s.Stop(t.Context(), j.id); err != nil || i.State != Killed {
				t.Errorf("%s, %v", i.State, err)
			}
		})
	}
	wg.Wait()
	noneAlive(t, word)
}

// Twenty callers at once get sixteen jobs; commands in the foreground do not count, and an end makes room.
func TestJobLimit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var mu sync.Mutex
	var jobs []*Job
	refused := 0
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			j, err := s.Start(t.Context(), Command{Text: "exec sleep 1000", Background: true, Timeout: time.Hour})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				jobs = append(jobs, j)
			case errors.Is(err, ErrJobLimit):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(jobs) != defaultMaxJobs || refused != 20-defaultMaxJobs {
		t.Fatalf("%d jobs, %d refused", len(jobs), refused)
	}
	if i, _, _ := s.run(t, "true"); i.State != Completed {
		t.Errorf("in the foreground: %s", i.State)
	}
	if _, err := s.Stop(t.Context(), jobs[0].id); err != nil {
		t.Error(err)
	}
	s.start(t, Command{Text: "true", Background: true})
	list, err := s.List(t.Context())
	must(t, err)
	if len(list) != 17 || list[0].Command != "true" {
		t.Errorf("%d jobs are listed, the newest is %q", len(list), list[0].Command)
	}
}

func TestCloseEndsAll(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	word := sleepFor()
	text := "(setsid sleep " + word + " &); echo ready; sleep " + word
	job, call := s.start(t, Command{Text: text, Background: true}), s.start(t, Command{Text: text})
	s.printed(t, job, "ready")
	s.printed(t, call, "ready")
	must(t, s.Close())
	noneAlive(t, word)
	if files := s.files(t); len(files) != 1 || files[0] != job.id+logSuffix {
		t.Errorf("files %v, want the log of the job only", files)
	}
	if i := job.Info(); i.State != Lost {
		t.Errorf("job is %s", i.State)
	}
	if _, err := s.Start(t.Context(), Command{Text: "true"}); !errors.Is(err, ErrClosed) {
		t.Errorf("Start after Close: %v", err)
	}
	must(t, s.Close())

	// The next process of the same session can read it.
	next := stageOn(t, s.board, s.Shell.dir)
	c, err := next.Output(t.Context(), job.id, 0, 100)
	must(t, err)
	if c.Head != "ready\n" || c.Info.State != Lost || c.Lines != 1 {
		t.Errorf("read again: %+v", c)
	}
	if _, _, err := next.Streams(t.Context(), job.id, 100); !errors.Is(err, ErrUnknown) {
		t.Errorf("Streams of a former process: %v", err)
	}
}

func TestUnknownJobs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	call := s.start(t, Command{Text: "true"})
	defer call.Release()
	must(t, os.WriteFile(filepath.Join(s.dir, "job_aaaaaaaaaaaa.log"), []byte("x"), 0o600))
	for _, id := range []string{
		"", "job_", "job_aaaaaaaaaaaa", "job_AAAAAAAAAAAA", "job_aaaaaaaaaaa1", "job_aaaaaaaaaaaaa", "../" + call.id, "job_aaaa/aaaaaaa",
		"job_aaaaaaaaaaa\x00", "job_..........", "job_aaaaaaaaaaa.", strings.Repeat("a", 1<<20),
	} {
		_, err := s.Output(t.Context(), id, 0, 10)
		_, _, err2 := s.Streams(t.Context(), id, 10)
		_, err3 := s.Stop(t.Context(), id)
		_, err4 := s.Await(t.Context(), id, never)
		for _, err := range []error{err, err2, err3, err4} {
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("%.20q: %v", id, err)
			}
		}
	}
}

// put writes a record as another process would have.
func (s stage) put(t *testing.T, r record) {
	t.Helper()
	value, err := json.Marshal(r)
	must(t, err)
	must(t, s.board.Set(t.Context(), recordKey(r.ID), value))
}

func TestRecordsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dead, running := "999999999.1", s.owner
	s.owner = "998.5" // so that this process is another one
	now := time.Now()
	must(t, os.MkdirAll(s.Shell.dir, 0o700))
	for i, r := range []record{
		{Owner: dead, Info: Info{State: Running, Background: true, Start: now}},
		{Owner: running, Info: Info{State: Running, Background: true, Start: now}},
		{Owner: dead, Info: Info{State: Completed, Background: true, Start: now, End: now}},
		{Owner: dead, Info: Info{State: Completed, Background: true, Start: now, End: now.Add(-keptFor - time.Hour)}},
		{Owner: running, Info: Info{State: Running, Start: now}},
		{Owner: dead, Info: Info{State: Running, Start: now}},
	} {
		r.ID = "job_" + strings.Repeat(string(rune('a'+i)), 12)
		for _, suffix := range []string{logSuffix, outSuffix, errSuffix, rcSuffix, cwdSuffix} {
			must(t, os.WriteFile(filepath.Join(s.Shell.dir, r.ID+suffix), []byte("output\n"), 0o600))
		}
		s.put(t, r)
	}
	list, err := s.List(t.Context())
	must(t, err)
	states := map[string]State{}
	for _, i := range list {
		states[i.ID[4:5]] = i.State
	}
	if fmt.Sprint(states) != "map[a:lost b:running c:completed]" {
		t.Errorf("listed: %v", states)
	}
	if c, err := s.Output(t.Context(), "job_aaaaaaaaaaaa", 0, 100); err != nil || c.Head != "output\n" || c.Info.State != Lost || c.Info.End.IsZero() {
		t.Errorf("output of a lost job: %+v, %v", c, err)
	}
	if _, err := s.Stop(t.Context(), "job_bbbbbbbbbbbb"); !errors.Is(err, ErrElsewhere) {
		t.Errorf("Stop of a job that runs elsewhere: %v", err)
	}
	if i, err := s.Await(t.Context(), "job_bbbbbbbbbbbb", time.Now()); err != nil || i.State != Running {
		t.Errorf("Await: %s, %v", i.State, err)
	}
	left := map[string]int{}
	for _, name := range s.files(t) {
		left[name[4:5]]++
	}
	// Of the lost job the log, of what runs elsewhere or has ended everything, of the others nothing.
	if fmt.Sprint(left) != "map[a:1 b:5 c:5 e:5]" {
		t.Errorf("files: %v", left)
	}
}

// A job of another process that ends while it is awaited is noticed.
func TestAwaitElsewhere(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	r := record{Owner: s.owner, Info: Info{ID: "job_aaaaaaaaaaaa", State: Running, Background: true}}
	s.put(t, r)
	done := make(chan Info)
	go func() {
		i, _ := s.Await(t.Context(), r.ID, never)
		done <- i
	}()
	r.State, r.End = Completed, time.Now()
	s.put(t, r)
	if i := <-done; i.State != Completed {
		t.Errorf("got %s", i.State)
	}
}

func TestRecordOfLongCommand(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	text := "true # " + strings.Repeat("ü", 40_000)
	j := s.start(t, Command{Text: text, Background: true})
	_, err := s.Await(t.Context(), j.id, never)
	must(t, err)
	if r := j.record(); len(r.Command) > maxCommand || j.Info().Command != text {
		t.Errorf("the record holds %d bytes, the job %d of %d", len(r.Command), len(j.Info().Command), len(text))
	}
}

func TestOldJobsAreForgotten(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.start(t, Command{Text: "echo hi", Background: true})
	_, err := s.Await(t.Context(), j.id, never)
	must(t, err)
	waitFor(t, "the record is written", func() bool {
		i, err := s.load(t.Context(), j.id)
		return err == nil && i.State == Completed
	})
	j.mu.Lock()
	j.info.End = j.info.End.Add(-keptFor - time.Minute)
	j.mu.Unlock()
	list, err := s.List(t.Context())
	must(t, err)
	if files := s.files(t); len(list) > 0 || len(files) > 0 {
		t.Errorf("left: %v, %v", list, files)
	}
}
