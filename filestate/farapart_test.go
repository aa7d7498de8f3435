package filestate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/leaktest"
)

// An edit at both ends of a large file of which only a part was read left nothing that was certainly seen, so the next edit
// was told that the file had not been read yet. It was, and the session itself made it what it is.
func TestEditsFarApart(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	d := newDesk(t)
	var b strings.Builder
	for i := range 400_000 {
		fmt.Fprintf(&b, "line %07d\n", i)
	}
	content := b.String()
	d.write("a", content)
	d.see("a", span{From: 0, To: 13})
	content = strings.NewReplacer("line 0000000\n", "first\n", "line 0399999\n", "last\n").Replace(content)
	d.must(d.change("a", func([]byte) ([]byte, error) { return []byte(content), nil }))
	d.must(d.edit("a", "line 0200000\n", "middle\n"))
	_, err := d.put("a", "nothing else\n", func(e *filestate.Edit) { e.Whole = true })
	if _, ok := errors.AsType[*filestate.PartReadError](err); !ok {
		t.Errorf("to replace all is %v, want a PartReadError", err)
	}
}
