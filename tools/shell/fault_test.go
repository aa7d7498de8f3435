package shell

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestLogThatCannotBeWritten: an output whose log lacks something says so, with the cause, and its streams are whole.
func TestLogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	o := newOutputs(t, smallLimits())
	o.write(&o.out, &o.allOut, []byte("one\n"))
	if !o.take() || o.lost() != "" {
		t.Fatalf("lost: %q", o.lost())
	}
	log := o.log
	var err error
	o.log, err = os.Open(o.path) // only to read
	must(t, err)
	o.write(&o.out, &o.allOut, []byte("two\n"))
	if o.take() || !strings.Contains(o.lost(), "bad file descriptor") && !strings.Contains(o.lost(), "Access is denied") {
		t.Errorf("lost: %q", o.lost())
	}
	must(t, log.Close())
	c, err := o.out.chunk(o.limits, 100)
	if must(t, err); c.Head != "one\ntwo\n" {
		t.Errorf("the stream is %q", c.Head)
	}
	o.mu.Lock()
	o.lose(&fs.PathError{Op: "write", Path: "x", Err: errors.New("another")})
	o.mu.Unlock()
	if strings.Contains(o.lost(), "another") {
		t.Errorf("the cause became %q", o.lost())
	}
}
