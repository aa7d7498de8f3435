// Package toolset says which tools there are: by name and alias, through a dispatcher, and as a client lists them; and
// what is known of the clients that do.
package toolset

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"codehand/tools/catalog"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// maxTaught is how many characters of a schema an answer teaches.
const maxTaught = 4_000

// A Set is the tools of a server: those that its Sources have now. The zero Set has none. It is safe for concurrent
// use.
type Set struct {
	Lists Lists

	sources []Source
	refresh sync.Mutex // held while the Sources are asked
	now     atomic.Pointer[table]
}

// A table is the tools of a Set between two changes of its Sources. It does not change.
type table struct {
	revision uint64
	all      []tool.Tool
	byName   map[string]tool.Tool // by name and alias
}

// A Source has tools that can change while the server runs, such as those of a mounted server. Its methods are safe for
// concurrent use.
type Source interface {
	// Tools are those that it has now. It answers at once; the caller only reads the slice.
	Tools() []tool.Tool
	// Changed receives after each change of Tools, once for several that nobody has received yet. It is the same
	// channel each time, with one receiver. Closed, or nil: the tools stay as they are.
	Changed() <-chan struct{}
}

// A later is a Source that knows the names of tools before it knows the tools, and tools before a Set has asked again.
type later interface {
	Source
	// Late is the tool of this name, or one that stands for it until it is known; false: there is none.
	Late(name string) (tool.Tool, bool)
	// Wake makes it know its tools, in the background, for a session that looks for some.
	Wake(key session.Key)
}

// Fixed is a Source of tools that never change.
type Fixed []tool.Tool

// Tools are all of them.
func (f Fixed) Tools() []tool.Tool { return f }

// Changed is nil.
func (f Fixed) Changed() <-chan struct{} { return nil }

// Rights is what a Set asks a tenant: whether none of its sessions can use a tool.
type Rights interface{ Off(t tool.Tool) bool }

// New makes a Set. The error names two tools that one name could mean, or a name in tools.always that none has.
func New(lists Lists, sources ...Source) (*Set, error) {
	set := &Set{Lists: lists, sources: sources}
	if dropped := set.Refresh(); len(dropped) > 0 {
		return nil, dropped[0]
	}
	return set, lists.check(set.All())
}

// Refresh asks the Sources again. Of two tools that one name could mean, that of the later Source is left out, and an
// error says so.
func (set *Set) Refresh() (dropped []error) {
	set.refresh.Lock()
	defer set.refresh.Unlock()
	next := &table{byName: map[string]tool.Tool{}}
	if before := set.now.Load(); before != nil {
		next.revision = before.revision + 1
	}
	owner := map[string]string{} // by name in lower case: call_tool takes names in any
	for _, s := range set.sources {
		for _, t := range s.Tools() {
			if err := clash(owner, t); err != nil {
				dropped = append(dropped, err)
				continue
			}
			next.all = append(next.all, t)
			for _, n := range append([]string{t.Spec.Name}, t.Spec.Aliases...) {
				owner[strings.ToLower(n)] = t.Spec.Name
				next.byName[n] = t
			}
		}
	}
	set.now.Store(next)
	return dropped
}

// clash says which name of a tool is that of another already.
func clash(owner map[string]string, t tool.Tool) error {
	own := t.Spec.Name
	if other, taken := owner[strings.ToLower(own)]; taken {
		return fmt.Errorf("tool %s: the name %s is taken by %s", own, own, other)
	}
	for _, n := range t.Spec.Aliases { // an alias may be the name in another case
		if other, taken := owner[strings.ToLower(n)]; taken {
			return fmt.Errorf("tool %s: the name %s is taken by %s", own, n, other)
		}
	}
	return nil
}

// Watch refreshes the Set after each change of a Source, and then calls changed with what was left out. It returns once
// ended is closed. Calls of changed can overlap.
func (set *Set) Watch(ended <-chan struct{}, changed func(dropped []error)) {
	var all sync.WaitGroup
	for _, s := range set.sources {
		if s.Changed() == nil {
			continue
		}
		all.Go(func() {
			for {
				select {
				case _, open := <-s.Changed():
					if !open {
						return
					}
					changed(set.Refresh())
				case <-ended:
					return
				}
			}
		})
	}
	all.Wait()
}

// All are the tools as they are now. The caller only reads them.
func (set *Set) All() []tool.Tool { return set.current().all }

func (set *Set) current() *table {
	if now := set.now.Load(); now != nil {
		return now
	}
	return new(table)
}

// Now are the tools, and the number of the change that made them so: where it is the same, so are they.
func (set *Set) Now() (all []tool.Tool, revision uint64) {
	now := set.current()
	return now.all, now.revision
}

// Get finds a tool by its name, an alias or the name of another agent for it, as they are written.
func (set *Set) Get(name string) (tool.Tool, bool) {
	now := set.current().byName
	if t, ok := now[name]; ok {
		return t, true
	}
	if t, ok := now[catalog.Short(name)]; ok {
		return t, true
	}
	return set.late(name)
}

// late finds a tool that its Source does not know yet, or that has come since the Sources were asked.
func (set *Set) late(name string) (tool.Tool, bool) {
	if !strings.HasPrefix(name, mounted) {
		return tool.Tool{}, false
	}
	for _, s := range set.sources {
		if l, ok := s.(later); ok {
			if t, ok := l.Late(name); ok {
				return t, true
			}
		}
	}
	return tool.Tool{}, false
}

// Wake tells the Sources that a session looks for tools.
func (set *Set) Wake(key session.Key) {
	for _, s := range set.sources {
		if l, ok := s.(later); ok {
			l.Wake(key)
		}
	}
}

// find finds a tool by its name or an alias, in any case. Spaces around it are no part of it: an error that names them
// would read as if the tool that it proposes were unknown.
func (set *Set) find(name string) (t tool.Tool, ok bool) {
	name = strings.TrimSpace(name)
	now := set.current().byName
	if t, ok = now[name]; ok {
		return t, true
	}
	name = catalog.Short(name)
	for known, t := range now { // no two tools have names that differ in case alone: New
		if strings.EqualFold(known, name) {
			return t, true
		}
	}
	return set.late(name)
}

// A Target is the tool that a call is for, with its input. Decisions about a call use it and not the called name, which
// may be an alias or that of a dispatcher.
type Target struct {
	Tool    tool.Tool
	Input   json.RawMessage
	Through bool // a dispatcher was called
	// refused: the dispatcher's input names nothing that can be called, and Tool is the dispatcher; known is what the
	// caller can find. nil: it names something.
	refused func(known []catalog.Entry) *tool.Refusal
}

// Follow returns the target of a call of t by a tenant: t, or what a dispatcher leads to. A dispatcher that is switched
// off leads nowhere, so that it is refused itself.
func (set *Set) Follow(at Rights, t tool.Tool, input json.RawMessage) Target {
	own := Target{Tool: t, Input: input}
	if !t.Dispatches() || at.Off(t) {
		return own
	}
	name, inner, ok := t.Forward(input)
	if !ok {
		return own // Bind has the words
	}
	found, known := set.find(name)
	switch {
	case !known:
		own.refused = func(known []catalog.Entry) *tool.Refusal { return set.NoSuchTool(at, known, name) }
	case found.Dispatches():
		own.refused = func([]catalog.Entry) *tool.Refusal {
			return &tool.Refusal{
				Code: tool.InputInvalid,
				Text: found.Spec.Name + " cannot be called through " + t.Spec.Name +
					`. Give the tool that you need as "name".`,
			}
		}
	default:
		return Target{Tool: found, Input: inner, Through: true}
	}
	return own
}

// Unknown is the refusal of a call that names nothing that can be called; nil: it names something.
func (t *Target) Unknown(known []catalog.Entry) *tool.Refusal {
	if t.refused == nil {
		return nil
	}
	return t.refused(known)
}

// Schema is the schema of the target for a model whose input did not fit, cut if it is long.
func (t *Target) Schema() (text string, whole bool) {
	schema, name := []rune(string(t.Tool.Schema)), t.Tool.Spec.Name
	if len(schema) <= maxTaught {
		return "The schema of " + name + ": " + string(schema), true
	}
	return "The schema of " + name + ", cut: " + string(schema[:maxTaught-1]) + "…", false
}

// Unknown says in a line that there is no tool of a name, and which names of known may have been meant.
func (set *Set) Unknown(known []catalog.Entry, name string) string {
	shown, _ := results.Show(results.Line(name, 80))
	text := "Unknown tool: " + shown + "."
	if near := catalog.Nearest(known, name); len(near) > 0 {
		text += " Nearest: " + strings.Join(near, ", ") + "."
	}
	return text
}

// NoSuchTool is what a model reads that called a tool by a name that none has. known is what it can find.
func (set *Set) NoSuchTool(at Rights, known []catalog.Entry, name string) *tool.Refusal {
	text := set.Unknown(known, name)
	if set.Findable(at) {
		text += " Use " + Finder + " to find tools."
	}
	return &tool.Refusal{Code: tool.UnknownTool, Text: text}
}

// Findable says whether the sessions of a tenant can search for tools.
func (set *Set) Findable(at Rights) bool {
	t, ok := set.Get(Finder)
	return ok && !at.Off(t)
}
