package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
)

// TestNotifierIsSynchronous: 5,000 of 5,000 notifications of one request arrive before its answer and in order.
func TestNotifierIsSynchronous(t *testing.T) {
	t.Parallel()
	const notes = 5000
	outR, outW := io.Pipe()
	out := NewLineWriter(outW, ProgressPatience)
	f := &Flight{ID: json.RawMessage("1")}
	go func() {
		for i := range notes {
			line, err := NoticeLine("notifications/progress", map[string]any{"progressToken": "t", "progress": i + 1})
			if err == nil {
				err = out.WriteLine(line, 0, f.Waits)
			}
			if err != nil {
				t.Errorf("note %d: %v", i, err)
			}
		}
		_ = out.WriteLine(ResultLine(f.ID, []byte("{}")), 0, f.Settle)
		if err := out.WriteLine([]byte("late\n"), 0, f.Waits); !errors.Is(err, ErrAnswered) {
			t.Errorf("a note after the answer: %v", err)
		}
		_ = outW.Close()
	}()
	b, err := io.ReadAll(outR)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	if len(lines) != notes+1 {
		t.Fatalf("%d lines, want %d", len(lines), notes+1)
	}
	for i, l := range lines[:notes] {
		if want := fmt.Sprintf(`"progress":%d,`, i+1); !bytes.Contains(l, []byte(want)) {
			t.Fatalf("line %d is %s", i, l)
		}
	}
}
