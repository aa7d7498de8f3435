package filestate_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
	"codehand/filestate/splices"
)

// largeText is what tests change at some places.
func largeText() string { return strings.Repeat("a line of a large file\n", 400) }

// cut makes splices of a content that replace each of some texts, of which it has one, by another.
func cut(t *testing.T, content string, texts ...string) (l splices.List, made string) {
	t.Helper()
	made = content
	for i := 0; i < len(texts); i += 2 {
		at := strings.Index(made, texts[i])
		if at < 0 {
			t.Fatalf("no %q", texts[i])
		}
		l = l.With(splices.Splice{At: int64(at), Line: strings.Count(made[:at], "\n"), Old: []byte(texts[i]), New: []byte(texts[i+1])})
		made = made[:at] + texts[i+1] + made[at+len(texts[i]):]
	}
	return l, made
}

// spliced makes such a change of a file, whose content must not be in memory for it.
func (d keptDesk) spliced(name string, texts ...string) (c filestate.Change, made string) {
	d.Helper()
	filestate.SpliceFrom(d.l, 8)
	d.see(name)
	l, made := cut(d.T, d.read(name), texts...)
	c = d.must(d.change(name, notInMemory, func(e *filestate.Edit) { e.Splice = splicesOf(l...) }))
	d.holds(name, made)
	return c, made
}

// A change of a large file could not be taken back, since its content is not kept. What it replaced is.
func TestUndoOfSplices(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	was := "first\n" + largeText() + "second\n" + largeText() + "third"
	d.write("a", was)
	one, _ := d.spliced("a", "first", "1\n1", "second\n", "", "third", "3\n")
	if one.NoCopy || len(one.Splices) != 3 {
		t.Fatalf("the change is %+v", one)
	}
	if e := d.history(journal.Query{ID: one.ID})[0]; e.Files[0].NoCopy || e.Files[0].Added != 3 || e.Files[0].Removed != 3 {
		t.Errorf("the history has %+v", e.Files)
	}
	two, twice := d.spliced("a", "1\n1\n", "I\n", "3\n", "III\n")
	d = d.again()
	filestate.SpliceFrom(d.l, 8)
	back := d.mustUndo(two.ID)
	d.mustUndo(one.ID)
	d.holds("a", was)
	d.mustUndo(d.history(journal.Query{})[0].ID)
	d.mustUndo(back.ID)
	d.holds("a", twice)
	changes, err := d.l.Undo(t.Context(), journal.By{}, append(d.steps(one.ID), d.steps(two.ID)...)...)
	if err != nil || len(changes) != 1 || changes[0].NoCopy {
		t.Fatalf("both at once: %+v, %v", changes, err)
	}
	d.holds("a", was)
	d.noTemps()
}

// Whatever another program did to a large file since the change: it stays, at the place of the change, elsewhere, and
// where the size tells nothing.
func TestUndoOfSplicesConflicts(t *testing.T) {
	t.Parallel()
	for name, foreign := range map[string]func(now string) string{
		"at the place":        func(now string) string { return strings.Replace(now, "new\n", "NEW\n", 1) },
		"the old text again":  func(now string) string { return strings.Replace(now, "new\n", "old\n", 1) + "x" },
		"elsewhere":           func(now string) string { return strings.Replace(now, "first", "FIRST", 1) },
		"at the end":          func(now string) string { return now + "more\n" },
		"cut":                 func(now string) string { return now[:len(now)-40] },
		"cut before":          func(string) string { return "first\n" },
		"cut below the limit": func(string) string { return "f" },
		"as it was before":    func(now string) string { return strings.Replace(now, "new\n", "old\n", 1) },
	} {
		for _, from := range []int64{8, 1 << 30} { // the second with the content in memory
			d := newKeptDesk(t)
			d.write("a", "first\n"+largeText()+"old\n"+largeText())
			c, now := d.spliced("a", "old\n", "new\n")
			d.write("a", foreign(now))
			filestate.SpliceFrom(d.l, from)
			_, err := d.undo(c.ID)
			if e := wantConflict(t, err); !e.Large {
				t.Errorf("%s: %+v", name, e)
			}
			d.holds("a", foreign(now))
		}
	}
	d := newKeptDesk(t)
	d.write("a", "old\n"+largeText())
	c, _ := d.spliced("a", "old\n", "new\n")
	if err := os.Remove(d.path("a")); err != nil {
		t.Fatal(err)
	}
	_, err := d.undo(c.ID)
	if e := wantConflict(t, err); e.Large || e.Now != nil {
		t.Errorf("of a file that is gone: %+v", e)
	}
}

// A note that was changed on the disk makes no content that never was.
func TestUndoOfDamagedSplices(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "old\n"+largeText())
	c, now := d.spliced("a", "old\n", "new\n")
	note := d.notePath(c.ID)
	b, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	header, contents := d.parse(b)
	_ = header
	for i := range contents {
		damaged := append([]byte{}, b...)
		damaged[len(b)-len(contents)+i] ^= 1
		if err := os.WriteFile(note, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, from := range []int64{8, 1 << 30} {
			filestate.SpliceFrom(d.l, from)
			if _, err := d.undo(c.ID); err == nil && d.read("a") != "old\n"+largeText() {
				t.Fatalf("byte %d of the note was changed, and the file is not what it was", i)
			} else if err == nil {
				d.write("a", now) // a byte that means nothing, as the time in the head of gzip
			}
			d.holds("a", now)
		}
	}
}

// A crash leaves a change of two files half made, one of them large: both are as they were. What a change that was not
// made has written of the large one is no content of others, and is removed.
func TestRecoverSplices(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	was := "old\n" + largeText()
	d.write("a", was)
	d.write("b", "old b")
	filestate.SpliceFrom(d.l, 8)
	d.see("a")
	l, now := cut(t, was, "old\n", "new\n")
	by := journal.By{Call: callID}
	if _, err := d.l.Update(t.Context(), by, filestate.Edit{File: d.file("a"), Change: notInMemory, Splice: splicesOf(l...)},
		filestate.Edit{File: d.file("b"), Unseen: true, Change: makes("new b")}); err != nil {
		t.Fatal(err)
	}
	d.write("b", "old b")
	d.leaveOpen(callID)
	d = d.again()
	if repairs := d.recover(); len(repairs) != 1 || repairs[0].Outcome != journal.OutcomeBack {
		t.Errorf("the repairs are %+v", repairs)
	}
	d.holds("a", was)
	d.holds("b", "old b")

	c, _ := d.spliced("a", "old\n", "new\n")
	temp := d.tempOf(c.ID)
	for _, part := range []string{"", now[:3], now[:len(now)/2], now} {
		d.write("a", was)
		d.write(temp, part)
		d.leaveOpen(c.ID)
		d = d.again()
		if repairs := d.recover(); len(repairs) != 1 || repairs[0].Outcome != journal.OutcomeNot || len(d.history(journal.Query{Kept: true})) != 0 {
			t.Errorf("%d bytes were written: the repairs are %+v, the history %+v", len(part), repairs, d.history(journal.Query{Kept: true}))
		}
		d.holds("a", was)
		d.noTemps()
		c, _ = d.spliced("a", "old\n", "new\n")
		temp = d.tempOf(c.ID)
	}
}

// What the journal has no room for is said not to be kept.
func TestSplicesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "old\n"+largeText())
	c, _ := d.spliced("a", "old\n", strings.Repeat("n", journal.MaxDiffer))
	if !c.NoCopy {
		t.Error("it is said to be kept")
	}
	if _, err := d.undo(c.ID); err == nil || !strings.Contains(err.Error(), journal.ErrNoCopy.Error()) {
		t.Errorf("the undo says %v", err)
	}
}

// A large file whose content is in memory for its change, and which differs in little, can be taken back as well.
func TestUndoOfLargeChange(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	d := newKeptDesk(t)
	was := strings.Repeat("x", journal.MaxKept) + "end\n"
	d.write("a", was)
	c := d.must(d.put("a", "y"+was, unseen))
	if c.NoCopy || c.Splices != nil {
		t.Errorf("the change is %t, %v", c.NoCopy, c.Splices)
	}
	d.mustUndo(c.ID)
	if now, err := os.ReadFile(filepath.Join(d.dir, "a")); err != nil || string(now) != was {
		t.Errorf("%d bytes are there, %v", len(now), err)
	}
	if !d.must(d.put("a", strings.Repeat("y", len(was)), unseen)).NoCopy {
		t.Error("a content that is another one throughout is said to be kept")
	}
}

// After changes of several places nothing counts as seen but what was shown, and what the session put there.
func TestSplicesKeepWhatWasSeen(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	r := rand.New(rand.NewPCG(33, 9))
	counted := 0
	for range 150 {
		var text strings.Builder
		for range 20 + r.IntN(40) {
			text.WriteString([]string{"a\n", "b\n", "line\n", "x"}[r.IntN(4)])
		}
		was := text.String()
		from := r.IntN(len(was))
		shown := span{From: int64(from), To: int64(from + 1 + r.IntN(len(was)-from))}
		known := make([]bool, len(was)) // of the new content
		for i := shown.From; i < shown.To; i++ {
			known[i] = true
		}
		now := was
		var l splices.List
		for range 1 + r.IntN(3) {
			at := r.IntN(len(now))
			old := now[at : at+r.IntN(min(4, len(now)-at))]
			l = l.With(splices.Splice{At: int64(at), Old: []byte(old), New: []byte("NEW")})
			now = now[:at] + "NEW" + now[at+len(old):]
			known = slices.Concat(known[:at], []bool{true, true, true}, known[at+len(old):])
		}
		d := newDesk(t)
		filestate.SpliceFrom(d.l, 1)
		d.write("a", was)
		d.see("a", shown)
		d.must(d.change("a", notInMemory, func(e *filestate.Edit) { e.Splice = splicesOf(l...) }))
		d.holds("a", now)
		_, err := d.change("a", makes("x"), func(e *filestate.Edit) { e.Whole = true })
		part, isPart := errors.AsType[*filestate.PartReadError](err)
		if !isPart {
			continue
		}
		at := 0
		for i, line := range strings.SplitAfter(now, "\n") {
			seen := slices.ContainsFunc(part.Seen, func(l filestate.Lines) bool { return l.From <= i+1 && i+1 <= l.To })
			if body := strings.TrimSuffix(line, "\n"); seen && slices.Contains(known[at:at+len(body)], false) {
				t.Errorf("%q became %q, and %v was shown: line %d, %q, counts as seen", was, now, shown, i+1, line)
			} else if seen {
				counted++
			}
			at += len(line)
		}
	}
	if counted < 500 {
		t.Errorf("only %d lines counted as seen", counted)
	}
}
