package filestate_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/lock"
)

// BenchmarkEdit changes one line in the middle of a file, in every way by turns: as edit_file does ("edit", with the
// journal), without a journal, without the fsyncs, and beside them the least that a durable change costs (write, fsync,
// rename, fsync of the directory) and sed -i. It gives the medians in ms, and the first as a share of the plain one.
func BenchmarkEdit(b *testing.B) {
	for _, size := range []int{4 << 10, 10_000, 1_000_000, 30_000_000, 100_000_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) { benchEdit(b, size) })
	}
}

func benchEdit(b *testing.B, size int) {
	journal := openJournal(b, filepath.Join(b.TempDir(), "journal"))
	ways := []*way{
		newWay(b, "edit", size, ledgerEdit(filestate.Options{Dir: b.TempDir(), Journal: journal})),
		newWay(b, "unjournaled", size, ledgerEdit(filestate.Options{Dir: b.TempDir()})),
		newWay(b, "fast", size, ledgerEdit(filestate.Options{Dir: b.TempDir(), Fast: true})),
		newWay(b, "plain", size, plainEdit),
	}
	if _, err := exec.LookPath("sed"); err == nil {
		ways = append(ways, newWay(b, "sed", size, sedEdit))
	}
	for b.Loop() {
		for _, w := range ways {
			w.once(b)
		}
	}
	for _, w := range ways {
		b.ReportMetric(w.median(), w.name+"-ms")
	}
	b.ReportMetric(ways[0].median()/ways[3].median(), "edit-plain-ratio")
	b.ReportMetric(0, "ns/op") // of all ways together, which says nothing
}

// BenchmarkEditHeld is an edit of a file that another program holds open for writing, as a log or an editor does.
func BenchmarkEditHeld(b *testing.B) {
	o := filestate.Options{Dir: b.TempDir(), Journal: openJournal(b, filepath.Join(b.TempDir(), "journal"))}
	w := newWay(b, "held", 4<<10, ledgerEdit(o))
	for b.Loop() {
		holder, err := os.OpenFile(w.path, os.O_WRONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		w.once(b)
		_ = holder.Close() // nothing was written
	}
	b.ReportMetric(w.median(), "held-ms")
}

// A way is one way to change the line that holds "here" into one that holds "HERE", and back.
type way struct {
	name  string
	path  string
	turns int
	do    func(ctx context.Context, path, old, next string) error
	took  []time.Duration
}

func newWay(b *testing.B, name string, size int, do func(ctx context.Context, path, old, next string) error) *way {
	w := &way{name: name, path: filepath.Join(b.TempDir(), "a"), do: do}
	content := benchContent(size)
	copy(content[size/2/benchLine*benchLine:], "is here")
	if err := os.WriteFile(w.path, content, 0o644); err != nil {
		b.Fatal(err)
	}
	return w
}

const benchLine = 64 // bytes of a line of benchContent

// benchContent is as hard to compress as source code is: to about a third.
func benchContent(size int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, 0, size+benchLine)
	for len(out) < size {
		for range benchLine/8 - 1 {
			out = fmt.Appendf(out, "w%06d ", rng.IntN(1000))
		}
		out = append(out, "and so.\n"...)
	}
	return out[:size]
}

func (w *way) once(b *testing.B) {
	words := [2]string{"is here", "is HERE"}
	old, next := words[w.turns%2], words[(w.turns+1)%2]
	w.turns++
	start := time.Now()
	if err := w.do(b.Context(), w.path, old, next); err != nil {
		b.Fatalf("%s: %v", w.name, err)
	}
	w.took = append(w.took, time.Since(start))
}

func (w *way) median() float64 {
	slices.Sort(w.took)
	return float64(w.took[len(w.took)/2].Microseconds()) / 1000
}

func ledgerEdit(o filestate.Options) func(context.Context, string, string, string) error {
	l := filestate.New(o)
	unseen := true // the first edit; all others go by what was seen
	return func(ctx context.Context, path, old, next string) error {
		f, err := fileAt(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = l.Update(ctx, journal.By{}, filestate.Edit{File: f, Unseen: unseen, Change: func(b []byte) ([]byte, error) {
			return replaceOnce(b, old, next)
		}})
		unseen = false
		return err
	}
}

func replaceOnce(b []byte, old, next string) ([]byte, error) {
	i := bytes.Index(b, []byte(old))
	if i < 0 || bytes.Contains(b[i+1:], []byte(old)) {
		return nil, errAbsent
	}
	return slices.Concat(b[:i], []byte(next), b[i+len(old):]), nil
}

func plainEdit(_ context.Context, path, old, next string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if b, err = replaceOnce(b, old, next); err != nil {
		return err
	}
	f, err := os.Create(path + "~")
	if err != nil {
		return err
	}
	defer f.Close() // synced before
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(path+"~", path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func sedEdit(ctx context.Context, path, old, next string) error {
	return exec.CommandContext(ctx, "sed", "-i", "s/"+old+"/"+next+"/", path).Run()
}

func BenchmarkLock(b *testing.B) {
	l := lock.New(b.TempDir())
	for b.Loop() {
		unlock, err := l.Lock(b.Context(), "/some/path")
		if err != nil {
			b.Fatal(err)
		}
		unlock()
	}
}
