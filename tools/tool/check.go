package tool

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDescription is the length of a description in bytes: clients cut longer ones.
const maxDescription = 2000

// A nameForm is what a name must look like. It is no regular expression, because one with a large count costs a tenth
// of a millisecond at every start.
type nameForm struct {
	first, rest string // what it may begin with, and what may follow
	max         int    // bytes
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

var (
	toolName  = nameForm{lower, lower + digits + "_", 40}
	aliasName = nameForm{lower + upper, lower + upper + digits + "_", 40}
	// parameterName is what all providers accept as a property name.
	parameterName = nameForm{lower + upper + digits + "_-", lower + upper + digits + "_-", 64}
)

func (f nameForm) fits(s string) bool {
	return s != "" && len(s) <= f.max && strings.IndexByte(f.first, s[0]) >= 0 && strings.Trim(s, f.rest) == ""
}

func (f nameForm) String() string {
	return fmt.Sprintf("at most %d of [%s], beginning with one of [%s]", f.max, f.rest, f.first)
}

// newBinder reads a definition and finds what is wrong with it.
func newBinder[In any](d *Def[In]) (*binder[In], error) {
	b := &binder[In]{form{&d.Spec, nil}, d}
	var paths func(reflect.Value) []*string
	if d.Paths != nil {
		paths = func(v reflect.Value) []*string { return d.Paths(v.Addr().Interface().(*In)) }
	}
	does := (d.Run == nil) != (d.Forward == nil)
	return b, b.read(reflect.TypeFor[In](), does, d.Accept, d.Hidden, paths)
}

// read reads the shape of the input and finds what is wrong with a definition. does says that it has one thing to do;
// paths is nil or Def.Paths.
func (b *form) read(in reflect.Type, does bool, accept map[string]string, hidden []string,
	paths func(reflect.Value) []*string) error {
	if err := b.spec.check(); err != nil {
		return err
	}
	if !does {
		return errors.New("want either Run or Forward")
	}
	root, err := newShape(in)
	if err != nil {
		return err
	}
	b.root = root
	if err := b.checkHidden(hidden); err != nil {
		return err
	}
	if err := b.checkAccept(accept); err != nil {
		return err
	}
	if paths != nil {
		if err := b.checkPaths(reflect.New(in).Elem(), paths); err != nil {
			return err
		}
	}
	return root.checkPublished("")
}

// trimmed drops the newline at the end of an embedded file.
func (s Spec) trimmed() Spec {
	s.Description = strings.TrimSpace(s.Description)
	return s
}

// check looks at what every Def must get right. That title, description and hint are there is a property
// of the table of tools, so that a test can define a tool without prose.
func (s Spec) check() error {
	if !toolName.fits(s.Name) {
		return fmt.Errorf("the name is not %v", toolName)
	}
	seen := map[string]bool{s.Name: true}
	for _, a := range s.Aliases {
		if !aliasName.fits(a) || seen[a] {
			return fmt.Errorf("the alias %q is not %v, or is taken", a, aliasName)
		}
		seen[a] = true
	}
	if wrong := checkDescription(s.Description); wrong != "" {
		return errors.New("the description " + wrong)
	}
	if n := len(strings.Fields(s.Hint)); n != 0 && (n < 3 || n > 10) {
		return fmt.Errorf("the hint has %d words; it needs 3 to 10", n)
	}
	if s.MaxRunes < Unbounded || s.Scope < ScopeAll || s.Scope > ScopeWeb {
		return errors.New("MaxRunes or Scope is out of range")
	}
	return s.Traits.check()
}

// check finds promises that contradict each other.
func (t Traits) check() error {
	switch {
	case t.ReadOnly && t.Additive:
		return errors.New("ReadOnly says that nothing changes, Additive that something may; leave Additive out")
	case t.Parallel && !t.ReadOnly && !t.Private:
		return errors.New("what changes things must not run beside others; leave Parallel out")
	}
	return nil
}

// checkDescription says in half a sentence what is wrong with a description; "": nothing.
func checkDescription(s string) string {
	if len(s) > maxDescription {
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(s), maxDescription)
	}
	if !utf8.ValidString(s) {
		return "is not UTF-8"
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return fmt.Sprintf("has the invisible character %U", r)
		}
	}
	return ""
}

func (b *form) checkHidden(names []string) error {
	for _, name := range names {
		p := b.root.at(name)
		if p == nil || !p.optional {
			return fmt.Errorf("the hidden parameter %q is no optional parameter", name)
		}
		p.hidden = true
	}
	return nil
}

// at returns the parameter at a name as questions.preview, which leads through objects and the items of lists; nil:
// there is none.
func (s *shape) at(name string) *shape {
	for part := range strings.SplitSeq(name, ".") {
		if s.kind == list {
			s = s.item
		}
		if s = s.byName[part]; s == nil {
			return nil
		}
	}
	return s
}

// checkAccept puts each accepted name where it counts: at the root, or at the object or the items that it begins with.
func (b *form) checkAccept(accept map[string]string) error {
	for whole, to := range accept {
		at, name := b.root, whole
		if dot := strings.LastIndexByte(whole, '.'); dot >= 0 {
			if at, name = b.root.at(whole[:dot]), whole[dot+1:]; at != nil && at.kind == list {
				at = at.item
			}
		}
		if at == nil || at.byName[to] == nil || at.byName[name] != nil || name == "" {
			return fmt.Errorf("cannot accept %q for %q: the one must be new, the other a parameter", whole, to)
		}
		if at.accept == nil {
			at.accept = map[string]string{}
		}
		at.accept[name] = to
	}
	return nil
}

// checkPaths calls Paths once on an input in which every list has one item.
func (b *form) checkPaths(in reflect.Value, paths func(reflect.Value) []*string) error {
	b.root.sample(in)
	found := map[*string]leaf{}
	b.root.leaves(&place{}, in, found)
	for _, p := range paths(in) {
		if _, ok := found[p]; !ok {
			return errors.New("the function Paths points at something that is no string of the input")
		}
	}
	return nil
}

// checkPublished finds what providers reject: a parameter without a description, an integer without a
// minimum. Hidden parameters may have neither.
func (s *shape) checkPublished(at string) error {
	for _, f := range s.fields {
		if f.hidden {
			continue
		}
		name := strings.TrimPrefix(at+"."+f.name, ".")
		inner := f
		if f.kind == list {
			inner = f.item
		}
		if f.doc == "" {
			return fmt.Errorf("parameter %s has no description: the jsonschema tag is missing", name)
		}
		if wrong := checkDescription(f.doc); wrong != "" {
			return fmt.Errorf("the description of %s %s", name, wrong)
		}
		if inner.kind == integer && inner.min == nil {
			return fmt.Errorf("parameter %s has no minimum: add min= to its rule", name)
		}
		if err := inner.checkPublished(name); err != nil {
			return err
		}
	}
	return nil
}
