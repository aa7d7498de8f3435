package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// stuck makes the log of an output one that cannot be written, until healed is called.
func (o *outputs) stuck() (healed func()) {
	o.t.Helper()
	readOnly, err := os.Open(o.path)
	must(o.t, err)
	log := o.log
	o.log = readOnly
	return func() { must(o.t, readOnly.Close()); o.log = log }
}

// holds checks what is in the log, as every program reads it.
func (o *outputs) holds(want []byte) {
	o.t.Helper()
	if got, err := os.ReadFile(o.path); err != nil || !bytes.Equal(got, want) {
		o.t.Errorf("the log has %d bytes with %d zeros, want %d, %v", len(got), bytes.Count(got, []byte{0}), len(want), err)
	}
}

// TestLogThatCannotBeWritten: a log that cannot be written for a while lacks nothing then, and the command goes on as long
// as its spools may hold the rest. One that stays so says it with the cause, has no hole, and its streams are whole.
func TestLogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	o := newOutputs(t, smallLimits())
	o.write(&o.out, &o.allOut, []byte("one\n"))
	if !o.take() || o.lost() != "" {
		t.Fatalf("lost: %q", o.lost())
	}
	healed := o.stuck()
	o.write(&o.out, &o.allOut, []byte("two\n"))
	o.write(&o.err, &o.allErr, []byte("three\n"))
	if !o.take() || !strings.Contains(o.lost(), "bad file descriptor") && !strings.Contains(o.lost(), "Access is denied") {
		t.Errorf("lost: %q", o.lost())
	}
	if o.size != 4 || o.lines != 1 || o.out.pos != 4 || o.out.lines != 1 {
		t.Errorf("%d bytes and %d lines in the log, %d and %d of stdout", o.size, o.lines, o.out.pos, o.out.lines)
	}
	healed()
	if !o.take() || o.lost() != "" || o.lines != 3 {
		t.Errorf("lost: %q, %d lines", o.lost(), o.lines)
	}
	o.holds([]byte("one\ntwo\nthree\n"))

	_ = o.stuck()
	o.write(&o.out, &o.allOut, bytes.Repeat([]byte("x"), int(o.limits.keep)))
	if !o.take() {
		t.Error("ended although the spools may hold what is missing")
	}
	o.write(&o.out, &o.allOut, []byte("four\n"))
	if o.take() {
		t.Error("went on although nothing can be kept")
	}
	o.finish()
	if o.lost() == "" {
		t.Error("an output whose log lacks something does not say so")
	}
	o.holds([]byte("one\ntwo\nthree\n"))
	c, err := o.out.chunk(o.limits, 2*o.limits.keep)
	if must(t, err); c.Head != string(o.allOut) || c.Lines != 3 {
		t.Errorf("the stream has %d bytes of %d, %d lines", len(c.Head), len(o.allOut), c.Lines)
	}
	o.mu.Lock()
	o.lose(&fs.PathError{Op: "write", Path: "x", Err: errors.New("another")})
	o.mu.Unlock()
	if strings.Contains(o.lost(), "another") {
		t.Errorf("the cause became %q", o.lost())
	}
}

// However often a log cannot be written meanwhile, it is in the end what it had been without that.
func TestLogThatHeals(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	r := random(t)
	for range 20 {
		o := newOutputs(t, smallLimits())
		for range 40 {
			healed := func() {}
			if r.IntN(3) == 0 {
				healed = o.stuck()
			}
			text := strings.Repeat(fmt.Sprintf("%d\n", r.IntN(1e6)), 1+r.IntN(8000))
			o.write(&o.out, &o.allOut, []byte(text))
			if !o.take() {
				t.Fatal("ended below the limit")
			}
			healed()
			if !o.take() || o.lost() != "" {
				t.Fatalf("lost: %q", o.lost())
			}
			o.check(r)
		}
		o.finish()
		o.checkLog()
	}
}

// A log whose middle is missing and whose end cannot be put behind the line for it is cut before the gap, which reads as
// zeros.
func TestLogThatCannotBeClosedUp(t *testing.T) {
	t.Parallel()
	o := newOutputs(t, smallLimits())
	line := []byte("a line of text\n")
	o.write(&o.out, &o.allOut, bytes.Repeat(line, 60_000)) // more than twice what is kept
	if !o.take() {
		t.Fatal("ended below the limit")
	}
	_ = o.stuck()
	o.write(&o.out, &o.allOut, line)
	o.finish()
	if o.lost() == "" {
		t.Error("it does not say that it is not whole")
	}
	o.holds(o.merged[:o.limits.keep])
	c, err := logChunk(o.path, o.layout(), 0, 2*o.limits.keep, o.lines)
	if must(t, err); c.Head != string(o.merged[:o.limits.keep]) || c.Tail != "" || c.Lines != strings.Count(c.Head, "\n") {
		t.Errorf("%d and %d bytes, %d lines", len(c.Head), len(c.Tail), c.Lines)
	}
}

// What a command truncates while its log cannot be written is not in the log afterwards, which then says so.
func TestTruncatedWhileLogCannotBeWritten(t *testing.T) {
	t.Parallel()
	o := newOutputs(t, smallLimits())
	o.write(&o.out, &o.allOut, []byte("one\n"))
	o.take()
	healed := o.stuck()
	o.write(&o.out, &o.allOut, []byte("two\n"))
	o.take()
	must(t, o.out.file.Truncate(0))
	o.take()
	healed()
	o.write(&o.out, &o.allOut, []byte("4\n"))
	if !o.take() || o.lost() == "" {
		t.Errorf("lost: %q", o.lost())
	}
	o.finish()
	o.holds([]byte("one\n4\n"))
	if o.lost() == "" {
		t.Error("it is said to be whole in the end")
	}
}

// A log that cannot be written is not tried at every look.
func TestLogIsNotTriedAtEveryLook(t *testing.T) {
	t.Parallel()
	l := smallLimits()
	l.pause = 2
	o := newOutputs(t, l)
	healed := o.stuck()
	o.write(&o.out, &o.allOut, []byte("one\n"))
	o.take()
	healed()
	for look, want := range []bool{true, true, false} {
		if o.take(); (o.lost() != "") != want {
			t.Errorf("look %d: lost: %q", look+1, o.lost())
		}
	}
	o.holds([]byte("one\n"))
}

// What the disk did not give back of a spool was missing in the log without a word.
func TestSpoolThatCannotBeRead(t *testing.T) {
	t.Parallel()
	o := newOutputs(t, smallLimits())
	o.write(&o.out, &o.allOut, []byte("one\n"))
	o.take()
	o.write(&o.out, &o.allOut, []byte("two\n"))
	spool := o.out.file
	writeOnly, err := os.OpenFile(o.out.path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	o.out.file = writeOnly
	if !o.take() || o.lost() == "" {
		t.Errorf("lost: %q", o.lost())
	}
	o.holds([]byte("one\n"))

	o.out.file = spool
	if !o.take() || o.lost() != "" {
		t.Errorf("lost: %q", o.lost())
	}
	o.holds([]byte("one\ntwo\n"))

	o.write(&o.out, &o.allOut, []byte("three\n"))
	must(t, spool.Close())
	o.out.file = writeOnly
	o.finish()
	if o.lost() == "" {
		t.Error("an output that could not be read to its end does not say so")
	}
	o.holds([]byte("one\ntwo\n"))
}
