package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
	"codehand/filestate/lock"
	"codehand/server/config"
)

// What is no directory among the journals is none: doctor tries whether files can be made there while it reads them, and
// said at times that the journal cannot be read.
func TestRecoveredFilesBesideAFile(t *testing.T) {
	t.Parallel()
	state := leaktest.Dir(t)
	probe := filepath.Join(state, journalsDir, "doctor-1")
	if err := os.MkdirAll(filepath.Dir(probe), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := RecoveredFiles(t.Context(), state); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// Each principal has a journal of its own, and a new process settles what one that died left in any of them.
func TestJournals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it is not known there which processes have ended")
	}
	t.Parallel()
	state, work := leaktest.Dir(t), leaktest.Dir(t)
	cfg := config.Config{Journal: config.Journal{KeepDays: 30, MaxBytes: 1 << 20}}
	var log bytes.Buffer
	locker := lock.New(filepath.Join(state, "locks"))
	open := func() *Journals {
		return opened(NewJournals(state, locker, cfg, slog.New(slog.NewTextHandler(&log, nil))))
	}
	first := open()
	var ids []string
	for _, principal := range []string{"alice", "bob"} {
		j, err := first.Of(principal)
		if err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(work)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		changes, err := filestate.New(filestate.Options{Journal: j}).Update(t.Context(), journal.By{}, filestate.Edit{
			File:   filestate.File{Dir: root, Name: principal, Path: filepath.Join(work, principal)},
			Change: func([]byte) ([]byte, error) { return []byte("new"), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, changes[0].ID)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	orphan(t, filepath.Join(state, journalsDir, "alice"), ids[0])
	second := open()
	defer func() {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !strings.Contains(log.String(), ids[0]) || !strings.Contains(log.String(), "outcome=done") || strings.Contains(log.String(), ids[1]) {
		t.Errorf("the log says %q", log.String())
	}
	for i, principal := range []string{"alice", "bob"} {
		j, err := second.Of(principal)
		if err != nil {
			t.Fatal(err)
		}
		got, err := j.History(t.Context(), journal.Query{})
		if err != nil || len(got) != 1 || got[0].ID != ids[i] || got[0].Open {
			t.Errorf("the history of %s is %+v, %v", principal, got, err)
		}
	}
}

// What a program saved late and no journal could take was lost without a word in the server's log.
func TestJournalsLog(t *testing.T) {
	t.Parallel()
	state, work := leaktest.Dir(t), leaktest.Dir(t)
	var log bytes.Buffer
	all := opened(NewJournals(state, lock.New(filepath.Join(state, "locks")), config.Config{}, slog.New(slog.NewTextHandler(&log, nil))))
	j, err := all.Of("alice")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(work, "a")
	if err := os.WriteFile(path, []byte("late"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	j.WatchLate(journal.Late{File: file, Path: path, Stamp: disk.Stamp{Racy: true}})
	for _, ahead := range []time.Duration{0, time.Hour} { // of midnight
		day := filepath.Join(state, journalsDir, "alice", time.Now().UTC().Add(ahead).Format("20060102"))
		if err := os.WriteFile(day, nil, 0o600); err != nil { // where root cannot write either
			t.Fatal(err)
		}
	}
	if err := all.Close(); err != nil { // which looks at what comes late for the last time
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "level=ERROR msg=\"what a program saved late into a file that was changed is lost\" path=") || !strings.Contains(got, path) {
		t.Errorf("the log says %q", got)
	}
}

// No code would close a journal that is opened after the end.
func TestNoJournalAfterClose(t *testing.T) {
	t.Parallel()
	j := NewJournals(t.TempDir(), nil, config.Config{}, slog.New(slog.DiscardHandler))
	must(t, j.Close())
	if _, err := j.Of("p"); !errors.Is(err, errClosed) {
		t.Errorf("a journal after the end: %v", err)
	}
}

// orphan makes the note of a change one that a process left open which has died.
func orphan(t *testing.T, dir, id string) {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(dir, "*", "*-"+id+".done"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("the notes are %v, %v", notes, err)
	}
	b, err := os.ReadFile(notes[0])
	if err != nil {
		t.Fatal(err)
	}
	const noProcess = 1<<22 + 1 // beyond the largest id that Linux gives
	b = bytes.Replace(b, fmt.Appendf(nil, `"pid":%d`, os.Getpid()), fmt.Appendf(nil, `"pid":%d`, noProcess), 1)
	if err := os.WriteFile(strings.TrimSuffix(notes[0], "done")+"open", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(notes[0]); err != nil {
		t.Fatal(err)
	}
}

// opened settles what was left, as the start of a process does.
func opened(j *Journals) *Journals {
	j.Recover()
	return j
}
