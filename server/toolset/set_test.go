package toolset

import (
	"testing"

	"codehand/tools/tool"
)

// TestNamesOfTools: two tools whose names differ in case alone would be one for call_tool.
func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	named := func(name string, aliases ...string) tool.Tool {
		return tool.Tool{Spec: tool.Spec{Name: name, Aliases: aliases}}
	}
	for _, c := range []struct {
		tools []tool.Tool
		want  string
	}{
		{[]tool.Tool{named("one", "One"), named("two")}, ""},
		{[]tool.Tool{named("one"), named("two", "ONE")}, "tool two: the name ONE is taken by one"},
		{[]tool.Tool{named("one"), named("one")}, "tool one: the name one is taken by one"},
	} {
		got := ""
		if _, err := New(Lists{}, Fixed(c.tools)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// A source is a Source whose tools a test sets.
type source struct {
	tools   []tool.Tool
	changed chan struct{}
}

func (s *source) Tools() []tool.Tool       { return s.tools }
func (s *source) Changed() <-chan struct{} { return s.changed }

// TestSources: a Set has what its sources have now, under a number of its own. A name that an earlier source has stays
// with that one, and is free again when it is gone.
func TestSources(t *testing.T) {
	t.Parallel()
	named := func(name, title string) tool.Tool { return tool.Tool{Spec: tool.Spec{Name: name, Title: title}} }
	first, second := &source{changed: make(chan struct{})}, &source{changed: make(chan struct{})}
	set, err := New(Lists{}, Fixed{named("own", "")}, first, second)
	must(t, err)
	title := func(name string) string {
		x, _ := set.Get(name)
		return x.Spec.Title
	}
	_, before := set.Now()
	first.tools, second.tools = []tool.Tool{named("a", "first")}, []tool.Tool{named("A", "second"), named("OWN", ""), named("b", "second")}
	if dropped := set.Refresh(); len(dropped) != 2 || dropped[0].Error() != "tool A: the name A is taken by a" {
		t.Errorf("left out: %v", dropped)
	}
	all, after := set.Now()
	if after == before || len(all) != 3 || title("a") != "first" || title("b") != "second" {
		t.Errorf("%d tools, revisions %d and %d", len(all), before, after)
	}
	first.tools = nil
	if dropped := set.Refresh(); len(dropped) != 1 || title("a") != "" || title("A") != "second" {
		t.Errorf("left out: %v", dropped)
	}

	ended, told, over := make(chan struct{}), make(chan []error), make(chan struct{})
	go func() {
		set.Watch(ended, func(dropped []error) { told <- dropped })
		close(over)
	}()
	second.tools = nil
	second.changed <- struct{}{}
	if dropped := <-told; len(dropped) != 0 || len(set.All()) != 1 {
		t.Errorf("left out: %v, there are %d", dropped, len(set.All()))
	}
	close(first.changed) // it never changes again; the other one may
	second.tools = []tool.Tool{named("c", "")}
	second.changed <- struct{}{}
	if <-told; len(set.All()) != 2 {
		t.Errorf("there are %d", len(set.All()))
	}
	close(ended)
	<-over
}
