package journal

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A clock that was set back between two runs put new changes behind old ones: the last change of a file was then an old one,
// and what an undo had taken back did not count as undone.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"an hour": time.Hour, "a week": 7 * 24 * time.Hour, "years": 26 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "journal")
			j, err := Open(dir, Options{Fast: true})
			if err != nil {
				t.Fatal(err)
			}
			old := made(t, j)
			moveNotes(t, j, ahead)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if j, err = Open(dir, Options{Fast: true}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = j.Close() })
			second := made(t, j)
			if last, err := j.Last(t.Context(), Query{Path: "/w/a"}); err != nil || last.ID != second {
				t.Errorf("the last change is %s: %v, want %s", last.ID, err, second)
			}
			undo := made(t, j, old)
			if got, want := pageOf(t, j, ""), []string{undo, second, old + " undone"}; !slices.Equal(got, want) {
				t.Errorf("the changes are %v, want %v", got, want)
			}
		})
	}
}

// A clock that was set back under running processes put the changes of each behind those of the others: an undo by path then
// took an older change than the last one, and was refused.
func TestClockSetBackMeanwhile(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"some seconds": 10 * time.Second, "a day": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "journal")
			var js [2]*Journal
			for i := range js {
				var err error
				if js[i], err = Open(dir, Options{Fast: true}); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = js[i].Close() })
			}
			_ = made(t, js[0])
			want := []string{made(t, js[1])}
			moveNotes(t, js[0], ahead)
			for _, j := range js { // as if their clocks had been ahead as well
				j.clock.ahead += ahead
			}
			for i := range 4 {
				want = append(want, made(t, js[i%2]))
			}
			slices.Reverse(want)
			for _, j := range js {
				if got := pageOf(t, j, ""); !slices.Equal(got, want[:4]) {
					t.Errorf("the changes are %v, want %v", got, want[:4])
				}
			}
		})
	}
}

// Another machine had the journal for a while, whose clock is some seconds ahead: what this one notes then is newer.
func TestOthersNoted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "journal")
	var js [2]*Journal
	for i := range js {
		var err error
		if js[i], err = Open(dir, Options{Fast: true}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = js[i].Close() })
	}
	_ = made(t, js[0])
	_ = made(t, js[1])
	moveNotes(t, js[1], 10*time.Second)
	js[0].OthersNoted()
	newest := made(t, js[0])
	if got := pageOf(t, js[0], ""); got[0] != newest {
		t.Errorf("the changes are %v, want %s first", got, newest)
	}
}

// The clock of another machine is ahead by a day.
func TestClockOfAnotherMachine(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	old := made(t, j)
	moveNotes(t, j, 24*time.Hour)
	second, third := made(t, j), made(t, j)
	if got, want := pageOf(t, j, ""), []string{third, second, old}; !slices.Equal(got, want) {
		t.Errorf("the changes are %v, want %v", got, want)
	}
}

func TestClockGoesOn(t *testing.T) {
	t.Parallel()
	var c clock
	now := time.Now()
	if !c.setBack(now) || c.setBack(now.Add(time.Hour)) || c.setBack(now.Add(time.Hour)) {
		t.Error("the clock was set back")
	}
	c.ahead += time.Second
	if !c.setBack(now.Add(2*time.Hour)) || c.setBack(now.Add(2*time.Hour)) {
		t.Error("the clock was not set back once")
	}
}

// A day to come is a sign only if it has notes: else each change would look at all notes of its own day. And one that cannot be
// read is a sign until it can be.
func TestClockOfADayWithoutNotes(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	day := filepath.Join(j.dir, "29991231")
	if err := os.Mkdir(day, 0o700); err != nil {
		t.Fatal(err)
	}
	if j.hasNoteAfter(time.Now()) {
		t.Error("an empty directory has a note")
	}
	_ = made(t, j)
	if j.clock.began.IsZero() {
		t.Error("all was read, and is read again")
	}
	if err := os.Remove(day); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Base(day), day); err != nil { // ELOOP
		t.Fatal(err)
	}
	j.clock.ahead += time.Second // it goes back now
	_ = made(t, j)
	if !j.clock.began.IsZero() {
		t.Error("what could not be read is not looked at again")
	}
}

// A note from the end of time leaves changes a time of their own.
func TestClockAtItsEnd(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	end := noteName{at: math.MaxInt64, id: "aaaaaaaaaaaaaaaa", state: stateDone}
	if err := os.Mkdir(filepath.Join(j.dir, end.day()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(j.dir, end.path()), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first, second := made(t, j), made(t, j)
	if got, want := pageOf(t, j, ""), []string{second, first}; !slices.Equal(got, want) {
		t.Errorf("the changes are %v, want %v", got, want)
	}
}

// moveNotes gives all notes names of a later time, as a clock would have that was set back afterwards.
func moveNotes(t *testing.T, j *Journal, later time.Duration) {
	t.Helper()
	for n := range j.names() {
		to := n
		to.at += int64(later)
		if err := os.MkdirAll(filepath.Join(j.dir, to.day()), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := j.root.Rename(n.path(), to.path()); err != nil {
			t.Fatal(err)
		}
	}
}
