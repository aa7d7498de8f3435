package filestate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"codehand/filestate"
)

func TestStaleShowsBothContents(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	s := d.see("a")
	d.write("a", "two\n")
	_, err := d.edit("a", "two", "three")
	e := wantStale(t, err)
	if string(e.Old) != "one\n" || string(e.New) != "two\n" || e.Was != s.Version || e.Now != versionOf("two\n") {
		t.Fatalf("got %+v", e)
	}
	if err := d.l.Accept(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	d.must(d.put("a", "three\n"))
}

func TestAcceptOfAPart(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lines := strings.Split(strings.Repeat("x\n", 9), "\n")
	for i := range lines {
		lines[i] = strings.Repeat(string(rune('a'+i)), 5)
	}
	d.write("a", strings.Join(lines, "\n"))
	d.see("a", filestate.Span{From: 0, To: 12})
	lines[1], lines[8] = "changed", "changed, too"
	d.write("a", strings.Join(lines, "\n"))
	_, err := d.put("a", "all")
	if err := d.l.Accept(t.Context(), wantStale(t, err)); err != nil {
		t.Fatal(err)
	}
	_, err = d.put("a", "all")
	e, ok := errors.AsType[*filestate.PartReadError](err)
	if want := []filestate.Lines{{From: 1, To: 2}}; !ok || !slices.Equal(e.Seen[:1], want) {
		t.Fatalf("got %v, want a part read that begins with lines %v", err, want)
	}
	d.must(d.edit("a", "changed", "again"))
}

func TestAcceptOfAFileShownWhole(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *filestate.Options) { o.Contents = filestate.NewContents(1) })
	d.write("a", "one\n")
	d.see("a", filestate.Span{From: 0, To: 1})
	d.write("a", "two\n")
	_, err := d.edit("a", "two", "three")
	e := wantStale(t, err)
	if e.Old != nil {
		t.Fatal("an old content is held beyond the budget")
	}
	if err := d.l.Accept(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	d.must(d.put("a", "three\n"))
}

func TestNotAcceptedStaysStale(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	d.see("a")
	d.write("a", "two\n")
	for range 2 {
		_, err := d.edit("a", "two", "three")
		wantStale(t, err)
	}
	d.holds("a", "two\n")
}
