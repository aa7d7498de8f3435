package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

// The plan file is reached however it is spelled, and nothing beside it is.
func TestWritable(t *testing.T) {
	f := newFixture(t)
	f.write(t, "plans/plan.md", "plan")
	f.write(t, "plans/other.md", secret)
	f.link(t, "ws/to-plan", "TOP/plans/plan.md")
	f.link(t, "ws/to-plans", "../plans")
	f.link(t, "ws/to-other", "../plans/other.md")
	f.link(t, "ws/round", "../plans/../plans/plan.md")
	s := f.Writable(f.path("plans/plan.md"))
	for _, c := range []struct{ path, write, read string }{
		{f.path("plans/plan.md"), "ok", "ok"},
		{f.path("plans") + "/./x/../plan.md", "ok", "ok"},
		{"../plans/plan.md", "ok", "ok"},
		{"to-plan", "ok", "ok"},
		{"to-plans/plan.md", "ok", "ok"},
		{"round", "outside", "outside"}, // the server may not look whether `plans` is a link
		{"to-other", "outside", "outside"},
		{"to-plans/other.md", "outside", "outside"},
		{"to-plans", "outside", "outside"},
		{f.path("plans"), "outside", "outside"},
		{f.path("plans/other.md"), "outside", "outside"},
		{f.path("plans/new.md"), "outside", "outside"},
		{f.path("plans/plan.md.bak"), "outside", "outside"},
		{f.path("plans/plan.md/x"), "system", "system"}, // it is no directory
		{f.path("outside/x.txt"), "outside", "outside"},
		{f.path("kept/k.txt"), "outside", "ok"},
		{"a.txt", "ok", "ok"},
	} {
		for access, want := range map[Access]string{Write: c.write, Read: c.read} {
			p, err := s.Open(c.path, access)
			if err == nil {
				_ = p.Dir.Close()
			}
			if got := kind(err); got != want {
				t.Errorf("%s, access %d: got %s (%v), want %s", c.path, access, got, err, want)
			}
		}
	}
	if !s.Same("to-plan", f.path("plans/plan.md")) || s.Same("to-plan", "a.txt") {
		t.Error("a link to the plan file is not the plan file")
	}
	if real, inside := s.Resolve("to-plan"); real != f.path("plans/plan.md") || inside {
		t.Errorf("got %s, inside %v; want the plan file, which is in no root", real, inside)
	}
	if _, err := f.Open("to-plan", Read); kind(err) != "outside" {
		t.Errorf("the first Space now reaches the plan file: %v", err)
	}
}

func TestWritableIsOneFile(t *testing.T) {
	f := newFixture(t)
	f.write(t, "plans/x.md", secret)
	s := f.Writable(f.path("plans/plan.md"))
	if _, err := s.Open(f.path("plans/plan.md"), Read); kind(err) != "missing" {
		t.Errorf("got %v, want a missing file", err)
	}
	if _, err := s.Open(f.path("plans/plan.md/deep/x"), Write); kind(err) != "outside" {
		t.Errorf("below a missing plan file: got %v, want outside", err)
	}
	p, err := s.Open(f.path("plans/plan.md"), Write)
	if err != nil || p.Path != f.path("plans/plan.md") || p.Name != "plan.md" {
		t.Fatalf("got %+v, %v", p, err)
	}
	_ = p.Dir.Close()
	// What stands in its place is not followed, not even into a root.
	for _, target := range []string{"x.md", "../ws/a.txt"} {
		f.link(t, "plans/plan.md", target)
		if _, err := s.Open(f.path("plans/plan.md"), Write); kind(err) != "outside" {
			t.Errorf("a link to %s: got %v, want outside", target, err)
		}
		if err := os.Remove(f.path("plans/plan.md")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(f.path("plans/plan.md/deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(f.path("plans/plan.md/deep"), Read); kind(err) != "outside" {
		t.Errorf("below a directory in its place: got %v, want outside", err)
	}
}

// A file in a root stays what it was, and what names no file adds nothing.
func TestWritableAddsNothing(t *testing.T) {
	f := newFixture(t)
	for _, file := range []string{"plan.md", "", string(filepath.Separator), f.path("ws/a.txt"), f.path("ws/dir")} {
		s := f.Writable(file)
		if _, err := s.Open(f.path("outside/x.txt"), Read); kind(err) != "outside" {
			t.Errorf("%q: got %v, want outside", file, err)
		}
		p, err := s.Open("dir/b.txt", Write)
		if err != nil {
			t.Errorf("%q: %v", file, err)
			continue
		}
		_ = p.Dir.Close()
	}
}

// The directory may be named through a link, as /tmp is on some systems.
func TestWritableThroughLink(t *testing.T) {
	f := newFixture(t)
	f.write(t, "plans/plan.md", "plan")
	f.link(t, "state", "plans")
	s := f.Writable(f.path("state/plan.md"))
	for _, path := range []string{f.path("state/plan.md"), f.path("plans/plan.md")} {
		p, err := s.Open(path, Write)
		if err != nil || p.Path != f.path("plans/plan.md") {
			t.Errorf("%s: got %+v, %v", path, p, err)
			continue
		}
		_ = p.Dir.Close()
	}
}
