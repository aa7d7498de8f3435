package filestate_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
	"codehand/filestate/splices"
)

// notInMemory is a Change that must not be asked.
func notInMemory([]byte) ([]byte, error) { return nil, errors.New("the whole content was read") }

func splicesOf(all ...filestate.Splice) func(context.Context, io.ReaderAt, int64) (splices.List, error) {
	return func(context.Context, io.ReaderAt, int64) (splices.List, error) { return all, nil }
}

// splice changes one place of a file, which must not be read whole for that.
func (d desk) splice(name string, v filestate.Version, at int, old, new string) (filestate.Change, error) {
	return d.change(name, notInMemory, func(e *filestate.Edit) {
		e.Version = v
		e.Splice = splicesOf(filestate.Splice{At: int64(at), Old: []byte(old), New: []byte(new)})
	})
}

// A large file that is changed at one place is what a change of the whole makes of it, and so is what is remembered.
func TestSplice(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	random := rand.New(rand.NewPCG(33, 6))
	for range leaktest.Rounds(60, 200) {
		var content []byte
		for range 50 + random.IntN(2000) {
			content = append(content, "ab\n"[random.IntN(3)])
		}
		from := random.IntN(len(content))
		to := from + random.IntN(min(20, len(content)-from))
		add := strings.Repeat("new\n", random.IntN(4))
		if add == string(content[from:to]) {
			continue
		}
		want := string(content[:from]) + add + string(content[to:])
		var after [2]filestate.Change
		for i := range after {
			d := newDesk(t)
			filestate.SpliceFrom(d.l, 1)
			d.write("a", string(content))
			if random.IntN(2) == 0 {
				d.age("a", 1<<40) // else its stamp proves nothing
			}
			v := d.see("a").Version
			if i == 0 {
				after[i] = d.must(d.splice("a", v, from, string(content[from:to]), add))
				if c := after[i]; string(c.Old) != string(content[from:to]) || string(c.New) != add || !c.NoCopy && c.ID != "" {
					t.Errorf("the change shows %q and %q", c.Old, c.New)
				}
			} else {
				after[i] = d.must(d.change("a", makes(want), func(e *filestate.Edit) { e.Version = v }))
			}
			d.holds("a", want)
			d.noTemps()
			// The versions before and after serve as those of any change do.
			for _, v := range []filestate.Version{v, after[i].After} {
				if _, err := d.change("a", makes(want+"end"), func(e *filestate.Edit) { e.Version = v }); err != nil {
					t.Errorf("after a change of %d to %d, version %s: %v", from, to, v, err)
				}
			}
		}
		if after[0].Before != after[1].Before || after[0].After != after[1].After || after[0].Sums != after[1].Sums {
			t.Fatalf("%q, %d to %d becomes %q: a splice says %+v, a change of the whole %+v", content, from, to, add, after[0], after[1])
		}
	}
}

// What was shown of a file stays so, in its new place, and no more than that.
func TestSpliceKeepsWhatWasSeen(t *testing.T) {
	t.Parallel()
	d := largeDesk(t)
	filestate.SpliceFrom(d.l, 8)
	d.write("a", three)
	v := d.see("a", span{From: 7, To: 14}).Version
	if _, err := d.splice("a", v, 0, "one", "1"); !errors.Is(err, filestate.ErrPartRead) && err == nil {
		t.Error("a version of the second line serves a change of the first")
	}
	d.must(d.splice("a", v, 7, "two...\n", "2\n2\n"))
	d.holds("a", "one...\n2\n2\nthree.\n")
	_, err := d.change("a", makes("x"), func(e *filestate.Edit) { e.Whole = true })
	part, isPart := errors.AsType[*filestate.PartReadError](err)
	if !isPart || len(part.Seen) != 1 || part.Seen[0] != (filestate.Lines{From: 2, To: 3}) {
		t.Errorf("of the new content was seen %+v, %v", part, err)
	}
	d.must(d.splice("a", v, 7, "2\n", "3\n")) // several edits of one turn name one version
}

// A file that is not what was seen is refused as by any change: with the difference, and nothing written.
func TestSpliceOfAChangedFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	filestate.SpliceFrom(d.l, 8)
	d.write("a", three)
	v := d.see("a").Version
	now := strings.Replace(three, "two", "TWO", 1)
	d.write("a", now)
	asked := false
	_, err := d.change("a", func(old []byte) ([]byte, error) { asked = true; return append([]byte("x"), old...), nil },
		func(e *filestate.Edit) {
			e.Version = v
			e.Splice = splicesOf(filestate.Splice{At: 0, Old: []byte("one"), New: []byte("1")})
		})
	stale := wantStale(t, err)
	if !bytes.Equal(stale.New, []byte(now)) || asked {
		t.Errorf("the refusal shows %q, and the change was made: %t", stale.New, asked)
	}
	d.holds("a", now)
}

// Another program saves between the reading and the exchange: its content wins, whether the stamp shows it or not.
func TestSpliceMeetsAnotherSave(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"create", "metadata", "rename"} {
		d := newKeptDesk(t)
		filestate.SpliceFrom(d.l, 8)
		d.write("a", three)
		v := d.see("a").Version
		saved := strings.Replace(three, "three", "THREE", 1)
		d.beforeSteps(func(step string) error {
			if step == at {
				info, err := os.Stat(d.path("a"))
				if err != nil {
					return err
				}
				d.write("a", saved)
				return os.Chtimes(d.path("a"), info.ModTime(), info.ModTime())
			}
			return nil
		})
		if _, err := d.splice("a", v, 0, "one", "1"); err == nil {
			t.Errorf("saved before %s, and the change was made", at)
		}
		d.holds("a", saved)
		d.noTemps()
	}
}

// If a later file of the same update fails, the large one gets its old content again.
func TestSpliceIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{false, true} {
		d := newDesk(t, func(o *filestate.Options) {
			if kept {
				o.Journal = openJournal(t, filepath.Join(t.TempDir(), "journal"))
			}
		})
		filestate.SpliceFrom(d.l, 8)
		d.write("a", three)
		d.write("b", "b")
		v := d.see("a").Version
		renames := 0
		filestate.BeforeSteps(d.l, func(step string) error {
			if step != "rename" {
				return nil
			}
			if renames++; renames == 2 {
				return os.ErrPermission
			}
			return nil
		})
		_, err := d.l.Update(t.Context(), journal.By{}, filestate.Edit{File: d.file("a"), Version: v, Change: notInMemory,
			Splice: splicesOf(filestate.Splice{At: 0, Old: []byte("one"), New: []byte("1")})},
			filestate.Edit{File: d.file("b"), Unseen: true, Change: makes("c")})
		if _, isTorn := errors.AsType[*filestate.RollbackError](err); err == nil || isTorn {
			t.Errorf("journal %t: got %v", kept, err)
		}
		d.holds("a", three)
		d.holds("b", "b")
		d.noTemps()
	}
}
