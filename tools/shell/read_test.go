package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadWhole: the whole is what was printed, with a line in place of the gap, while the command runs and after.
func TestReadWhole(t *testing.T) {
	t.Parallel()
	r := random(t)
	for range 10 {
		o := newOutputs(t, smallLimits())
		look := func() {
			t.Helper()
			o.mu.Lock()
			defer o.mu.Unlock()
			k := o.limits.kept(int64(len(o.merged)))
			want := o.merged
			if k.head < k.tail {
				want = slicesConcat(o.merged[:k.head], []byte(fmt.Sprintf("\n[... %d bytes of output were not kept ...]\n", k.tail-k.head)), o.merged[k.tail:])
			}
			got, err := io.ReadAll(o.layout().reader(o.log))
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, want %d", len(got), len(want))
			}
		}
		for range 1 + r.IntN(20) {
			o.write(&o.out, &o.allOut, []byte(strings.Repeat(fmt.Sprintf("%d ü✓\n", r.IntN(1e6)), 1+r.IntN(6000))))
			if !o.take() {
				t.Fatal("ended below the limit")
			}
			look()
		}
		o.finish()
		o.checkLog()
	}
}

// TestRead: a job's output can be read while it runs, after it, and by another process; a job that is none cannot.
func TestRead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	read := func(s *Shell, id string) (string, error) {
		var text []byte
		_, err := s.Read(t.Context(), id, func(r io.Reader) (err error) {
			text, err = io.ReadAll(r)
			return err
		})
		return string(text), err
	}
	j := s.start(t, Command{Text: "echo one; sleep 60", Background: true})
	waitFor(t, "the first line", func() bool {
		text, err := read(s.Shell, j.id)
		return err == nil && text == "one\n"
	})
	_, err := s.Stop(t.Context(), j.id)
	must(t, err)
	if text, err := read(s.Shell, j.id); err != nil || !strings.HasPrefix(text, "one\n") {
		t.Errorf("after its end: %q (%v)", text, err)
	}
	other := stageOn(t, s.board, filepath.Dir(j.base()))
	if text, err := read(other.Shell, j.id); err != nil || !strings.HasPrefix(text, "one\n") {
		t.Errorf("in another process: %q (%v)", text, err)
	}
	for _, id := range []string{"", "job_aaaaaaaaaaaa", "../" + j.id} {
		if _, err := read(s.Shell, id); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", id, err)
		}
	}
	mine := errors.New("mine")
	if _, err := s.Read(t.Context(), j.id, func(io.Reader) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("the reader's own error became %v", err)
	}
}
