package sandbox

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// A reader that came too late, because it had no processor, found its deadline passed and not one byte of what the program
// had printed.
func TestOutputPastDeadline(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("pipes have no deadlines")
	}
	want := bytes.Repeat([]byte("printed\n"), 500)
	for name, tt := range map[string]struct{ held, waits bool }{
		"closed":                  {false, false},
		"held":                    {true, false},
		"held, and waited for":    {true, true},
		"closed, when waited for": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			if _, err := w.Write(want); err != nil { // it has room
				t.Fatal(err)
			}
			if !tt.held {
				_ = w.Close()
			}
			end := func() {
				if err := r.SetReadDeadline(time.Unix(1, 0)); err != nil {
					t.Error(err)
				}
			}
			var ended sync.WaitGroup
			defer ended.Wait()
			if tt.waits {
				ended.Go(end) // whenever it comes
			} else {
				end()
			}
			if got, err := io.ReadAll(Output(r)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v, want %d", len(got), err, len(want))
			}
		})
	}
}

// A pipe that cannot be read is not taken for one that has ended.
func TestOutputClosed(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	late := &output{file: r, late: true}
	_ = r.Close()
	for _, reader := range []io.Reader{Output(r), late} {
		if _, err := reader.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("a closed pipe: %v", err)
		}
	}
}
