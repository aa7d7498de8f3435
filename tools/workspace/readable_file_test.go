package workspace

import "testing"

// A plan that was approved can be read and no longer changed, and nothing beside it is reached.
func TestReadableFile(t *testing.T) {
	f := newFixture(t)
	f.write(t, "plans/plan.md", "plan")
	f.write(t, "plans/other.md", secret)
	f.link(t, "ws/to-plan", "TOP/plans/plan.md")
	s := f.ReadableFile(f.path("plans/plan.md"))
	for _, c := range []struct{ path, write, read string }{
		{f.path("plans/plan.md"), "outside", "ok"},
		{f.path("plans") + "/./x/../plan.md", "outside", "ok"},
		{"to-plan", "outside", "ok"},
		{f.path("plans"), "outside", "outside"},
		{f.path("plans/other.md"), "outside", "outside"},
		{f.path("plans/new.md"), "outside", "outside"},
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
	if _, inside := s.Resolve(f.path("plans/plan.md")); inside {
		t.Error("the plan file is inside the roots")
	}
	// In a root it is a file like any other.
	p, err := f.ReadableFile(f.path("ws/a.txt")).Open("a.txt", Write)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Dir.Close()
	for _, none := range []string{"", "a.txt", "/"} {
		if _, err := f.ReadableFile(none).Open(f.path("outside/x.txt"), Read); kind(err) != "outside" {
			t.Errorf("%q: got %v", none, err)
		}
	}
}
