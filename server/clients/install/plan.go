package install

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"codehand/server/clients"
	"codehand/server/clients/install/forms"
	"codehand/tools/textedit"
)

// Want is how a client is to reach codehand.
type Want struct {
	Command  string            // absolute path of codehand
	Roots    []string          // absolute directories; none: what is usual for the client
	Env      map[string]string // for the server, besides what an entry of ours has already
	Path     string            // PATH for clients with windows; "": they are not told. A project's file never is.
	URL      string            // of a remote server; "": the client starts codehand itself
	TokenEnv string            // variable that holds the token of URL; "": none is needed
	Project  bool              // the file of the project, not the user's own
	Foreign  bool              // an entry of our name that starts another program is replaced, or removed, too
	// Exclusive makes Claude Code use our tools for files in place of its own, which are denied; of ours, those named
	// in Allow need no question.
	Exclusive bool
	Allow     []string
}

// A Change is what is to be done to the files of one client.
type Change struct {
	Client string
	Files  []FileChange // in the order in which they are written; what stays as it is is not among them
	// Rootless says that the entry names no directory, though the client starts servers not always in the project.
	Rootless bool

	places Places
	killed func(step string) // tests end the process there; nil: nobody does
}

// A FileChange is the change of one file.
type FileChange struct {
	File     string // as people see it
	Old, New []byte // nil: no file
	Diff     string // unified, without headers; ends in a line feed

	private  bool // a new file is for its user alone
	rootless bool // as Change.Rootless
	note     note
}

// The errors of Plan that a decision of the caller resolves.
var (
	ErrRootNeeded = errors.New("does not start servers in a project, so name the directories to work in")
	ErrNoProject  = errors.New("has no file in a project")
	ErrUnknown    = errors.New("is no client that can be told by a file")
	ErrExclusive  = errors.New("has no settings that leave its own tools out")
	ErrChanged    = errors.New("the file has changed meanwhile")
	errNotTable   = errors.New("the file is no object or table of settings")
	errReadOnly   = errors.New("the file is read-only")
	errHidesJSON  = errors.New("this client reads this file in place of the config.json or config.ts beside it, " +
		"whose models would be gone; bring them here first, or install with --project")
	errUnknownHome = errors.New("the home directory is not known")
)

// A RefusedError says why a file is left as it is. Snippet is what can be put there by hand; "": nothing helps.
type RefusedError struct {
	File    string
	Snippet string
	err     error
}

// Error names the file.
func (e *RefusedError) Error() string { return e.File + ": " + e.err.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.err }

// A ForeignError says that the entry of our name starts something else. Want.Foreign replaces it.
type ForeignError struct{ File, Command string }

// Error names the file and the program.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s: the entry %q there starts another program: %s", e.File, forms.Name, e.Command)
}

// Plan reads the client's file and says what an install would change. Nothing is written. A Change without files says
// that all is as wanted. Errors are ErrRootNeeded, ErrNoProject, ErrExclusive and ErrUnknown, *SyntaxError,
// *RefusedError, *ForeignError, and those of reading.
func Plan(p Places, client string, want Want) (*Change, error) {
	p.Command = cmp.Or(p.Command, want.Command)
	_, files, notes, err := p.start(client, want)
	if err != nil {
		return nil, err
	}
	c := &Change{Client: client, places: p}
	for _, at := range files {
		f, err := p.planFile(at, client, want, notes[at])
		if err != nil {
			return nil, err
		}
		c.add(f)
		c.Rootless = c.Rootless || f.rootless
	}
	if want.Exclusive {
		f, err := p.planExclusive(client, want, notes)
		if err != nil {
			return nil, err
		}
		c.add(f)
	}
	return c, nil
}

// placed is a Want for which only the place of the entry matters.
func placed(w Want) Want {
	w.URL, w.Roots = "", []string{"/"}
	return w
}

// add takes a file that changes.
func (c *Change) add(f FileChange) {
	if f.File == "" || f.New != nil && f.Old != nil && bytes.Equal(f.Old, f.New) || f.New == nil && f.Old == nil {
		return
	}
	f.Diff = shown(f)
	c.Files = append(c.Files, f)
}

// shown is the difference as people see it: our own lines. What stands around them, and of a changed line the texts
// that are not ours, can be secrets of other servers.
func shown(f FileChange) string {
	var sides [2][]byte
	for i, data := range [][]byte{f.Old, f.New} {
		data = forms.For(f.File).Mask(data, builtIn)
		if n := len(data); n > 0 && data[n-1] != '\n' {
			data = append(bytes.Clone(data), '\n') // a line that gets an end is not changed
		}
		sides[i] = data
	}
	diff, _ := textedit.Diff(sides[0], sides[1], maxDiff)
	var b strings.Builder
	for line := range strings.Lines(diff + "\n") {
		if !strings.HasPrefix(line, " ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// maxDiff is how much of a difference is shown, in bytes.
const maxDiff = 16 << 10

// snippetOf is what the client's file is told. old is what our entry there says; nil: there is none, or it is remote.
func snippetOf(client string, want Want, old *Entry) (s clients.Snippet, err error) {
	told := func(roots []string) []clients.Snippet {
		if want.URL != "" {
			return clients.Snippets(clients.Endpoint{URL: want.URL, TokenEnv: want.TokenEnv, Command: want.Command})
		}
		l := clients.Launch{Command: want.Command, Roots: roots, Env: map[string]string{}, Path: want.Path}
		if want.Project {
			l.Path = "" // others share the file
		}
		if old != nil {
			maps.Copy(l.Env, old.Env)
		}
		if l.Path != "" {
			delete(l.Env, "PATH")
		}
		maps.Copy(l.Env, want.Env)
		return clients.Local(l)
	}
	found := told(want.Roots)
	at := slices.IndexFunc(found, func(f clients.Snippet) bool { return f.ID == client })
	if at < 0 {
		return clients.Snippet{}, fmt.Errorf("%q %w", client, ErrUnknown)
	}
	s = found[at]
	if client == "copilot" && want.Project {
		// Claude Code reads the same file, and knows no type local; Copilot CLI takes either name.
		defer func() { s.Text = strings.Replace(s.Text, `"type":"local"`, `"type":"stdio"`, 1) }()
	}
	switch {
	case want.URL != "" || len(want.Roots) > 0:
	case old != nil && len(old.Args) > 0 && old.Args[0] == "stdio":
		s = told(old.Args[1:])[at] // directories and options that a person chose
	case s.Start.Roots == clients.RootNeeded:
		return s, fmt.Errorf("%s %w", client, ErrRootNeeded)
	case s.Start.Roots == clients.RootVariable:
		s = told([]string{clients.WorkspaceFolder})[at]
	}
	return s, nil
}

// targets are the files that must have our entry.
func (p Places) targets(s clients.Snippet, project bool) ([]string, error) {
	if project {
		files := p.projectFiles(s)
		if len(files) == 0 {
			return nil, fmt.Errorf("%s %w", s.ID, ErrNoProject)
		}
		return []string{p.first(s, files)}, nil
	}
	own := p.first(s, p.userFiles(s))
	if own == "" {
		return nil, errUnknownHome
	}
	all := []string{own}
	if twin := p.expand(s.Twin.On(p.GOOS)); twin != "" && p.exists(p.dir(twin)) {
		all = append(all, twin)
	}
	return all, nil
}

// A reading is a client's file, decoded.
type reading struct {
	data []byte // nil: no file
	mark []byte // byte order mark, which body is without
	body []byte
	tree any
	may  bool // it can be written
}

// with is the content of the file with another body. It is never nil, which is no file.
func (r reading) with(body []byte) []byte { return append(append([]byte{}, r.mark...), body...) }

// located gives a syntax error its file.
func located(file string, err error) error {
	if at, ok := errors.AsType[*forms.SyntaxError](err); ok {
		at.File = file
		return at
	}
	return fmt.Errorf("%s: %w", file, err)
}

// read reads and decodes a file.
func (p Places) read(at string) (reading, error) {
	var r reading
	if err := stray(p, at); err != nil {
		return r, err
	}
	data, info, err := readFile(p.real(at))
	if err != nil {
		return r, &RefusedError{File: at, err: err}
	}
	r.data, r.body, r.may = data, data, info == nil || info.Mode().Perm()&0o200 != 0
	if rest, ok := bytes.CutPrefix(data, forms.ByteOrderMark); ok {
		r.mark, r.body = forms.ByteOrderMark, rest
	}
	if r.tree, err = forms.For(at).Decode(r.body); err != nil {
		return r, located(at, err)
	}
	if _, ok := r.tree.(map[string]any); !ok {
		return r, &RefusedError{File: at, err: errNotTable}
	}
	return r, nil
}

// planFile says what is to be done to one file that must have our entry.
func (p Places) planFile(at, client string, want Want, known []note) (FileChange, error) {
	f := FileChange{File: at, private: !want.Project}
	r, err := p.read(at)
	if err != nil {
		return f, err
	}
	form := forms.For(at)
	s, err := snippetOf(client, placed(want), nil)
	if err != nil {
		return f, err
	}
	wanted, err := form.Decode([]byte(s.Text))
	if err != nil {
		return f, err
	}
	old := namedEntry(r.tree, forms.Container(wanted))
	p.recognize(old, known)
	if old != nil && !old.Ours() && !want.Foreign {
		return f, &ForeignError{at, old.Command}
	}
	local := old
	if old != nil && (!old.Ours() || old.Remote) {
		local = nil
	}
	if local != nil && p.usable(local.Env["PATH"], want.Path) {
		// Each shell has a PATH of its own: that the one of this one is another is no reason to write.
		as := want
		as.Path = local.Env["PATH"]
		if s, err = snippetOf(client, as, local); err != nil {
			return f, err
		}
		if wanted, err = form.Decode([]byte(s.Text)); err == nil && forms.Same(forms.Merged(r.tree, wanted), r.tree) {
			return f, nil
		}
	}
	if s, err = snippetOf(client, want, local); err != nil {
		return f, err
	}
	if wanted, err = form.Decode([]byte(s.Text)); err != nil {
		return f, err
	}
	if e := namedEntry(wanted, forms.Container(wanted)); e != nil {
		f.rootless = s.Start.Roots == clients.RootOptional && !e.Remote && len(e.Args) == 1
	}
	goal := forms.Merged(r.tree, wanted)
	f.Old, f.New = r.data, r.data
	if forms.Same(goal, r.tree) && r.data != nil {
		return f, nil
	}
	switch {
	case !r.may:
		return f, &RefusedError{at, s.Text, errReadOnly}
	case client == "continue" && !want.Project && r.data == nil && p.hidesJSON(at):
		return f, &RefusedError{at, s.Text, errHidesJSON}
	}
	body, err := form.Merge(bytes.Clone(r.body), []byte(s.Text))
	if err == nil {
		var tree any
		if tree, err = form.Decode(body); err != nil || !forms.Same(tree, goal) {
			err = forms.ErrNotUnderstood
		}
	}
	if err != nil {
		return f, &RefusedError{at, s.Text, err}
	}
	f.New = r.with(body)
	base := p.base(at, r, forms.Container(wanted), known, old)
	f.note = noteOf(client, base, f.New)
	if want.URL == "" {
		f.note.Command = want.Command
	}
	f.note.Drop = missing(form, base, wanted)
	if base == nil {
		f.note.Dirs = lastOf(known).Dirs
	}
	return f, nil
}

// usable says whether a PATH that we wrote still serves: none of its directories has gone, but those that are in the
// PATH of now, too.
func (p Places) usable(list, now string) bool {
	for dir := range strings.SplitSeq(list, ":") {
		if !p.isAbs(dir) || !p.exists(dir) && !slices.Contains(strings.Split(now, ":"), dir) {
			return false
		}
	}
	return true
}

// hidesJSON says whether settings of Continue in an older form lie where a new file would stand for all of them.
func (p Places) hidesJSON(at string) bool {
	return p.exists(p.join(p.dir(at), "config.json")) || p.exists(p.join(p.dir(at), "config.ts"))
}

// missing are the keys of a snippet that a file did not have.
func missing(f forms.Form, base []byte, snippet any) []string {
	tree, err := f.Decode(bytes.TrimPrefix(base, forms.ByteOrderMark))
	had, _ := tree.(map[string]any)
	top, _ := snippet.(map[string]any)
	var keys []string
	for _, key := range sortedKeys(top) {
		if _, ok := had[key]; !ok && err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// namedEntry is the entry of our name, whatever it starts.
func namedEntry(tree any, container string) *Entry {
	if e := entryIn(tree, container); e != nil && e.Name == forms.Name {
		return e
	}
	return nil
}

// base is the file as it was before we first wrote to it: what an uninstall leaves.
func (p Places) base(at string, r reading, container string, known []note, old *Entry) []byte {
	if was, ok := restored(at, r, container, known); ok {
		return was
	}
	if old != nil && old.Ours() {
		if body, ok := removed(forms.For(at), r, container, nil); ok {
			return r.with(body)
		}
	}
	return r.data
}

// restored is the file as it was before what the notes say, with what others have changed since; nil and ok: there was
// none.
func restored(at string, r reading, container string, known []note) ([]byte, bool) {
	for _, n := range slices.Backward(known) {
		was, ok := n.undo(r.data)
		switch {
		case !ok:
			continue
		case sum(r.data) == n.Sum: // nobody has changed it
			return was, true
		}
		tree, err := forms.For(at).Decode(bytes.TrimPrefix(was, forms.ByteOrderMark))
		all := append(slices.Clone(n.Drop), container)
		if err == nil && forms.Same(forms.Without(tree, container, all), forms.Without(r.tree, container, all)) {
			return was, true
		}
	}
	return nil, false
}

// removed is the text of a file without our entry, and without the containers of drop that are empty then.
func removed(f forms.Form, r reading, container string, drop []string) ([]byte, bool) {
	body, err := f.Remove(bytes.Clone(r.body), container, drop)
	if err != nil {
		return nil, false
	}
	tree, err := f.Decode(body)
	all := append(slices.Clone(drop), container)
	return body, err == nil && forms.Same(forms.Without(tree, container, all), forms.Without(r.tree, container, all))
}

// start reads what a plan begins with: the snippet of a client, its files, and our notes about files.
func (p Places) start(client string, want Want) (
	s clients.Snippet, files []string, notes map[string][]note, err error,
) {
	if s, err = snippetOf(client, placed(want), nil); err != nil {
		return s, nil, nil, err
	}
	if files, err = p.targets(s, want.Project); err != nil {
		return s, nil, nil, err
	}
	notes, err = readNotes(p.State)
	return s, files, notes, err
}

// PlanRemoval says what an uninstall would change: what Want.Exclusive made goes, then our entry, and what an install
// made for it. A file that we made and that has nothing else in it goes, too. The errors are those of Plan.
func PlanRemoval(p Places, client string, want Want) (*Change, error) {
	p.Command = cmp.Or(p.Command, want.Command)
	s, files, notes, err := p.start(client, want)
	if err != nil {
		return nil, err
	}
	c := &Change{Client: client, places: p}
	// The client's own tools are back before ours go, so that it is never left with neither.
	if at := p.exclusiveFile(client, want.Project); at != "" {
		f, err := p.planInclusive(at, notes[at])
		if err != nil {
			return nil, err
		}
		c.add(f)
	}
	for _, at := range files {
		f, err := p.planRemoval(at, s, want, notes[at])
		if err != nil {
			return nil, err
		}
		c.add(f)
	}
	return c, nil
}

func (p Places) planRemoval(at string, s clients.Snippet, want Want, known []note) (FileChange, error) {
	f := FileChange{File: at}
	r, err := p.read(at)
	if err != nil || r.data == nil {
		return f, err
	}
	form := forms.For(at)
	wanted, err := form.Decode([]byte(s.Text))
	if err != nil {
		return f, err
	}
	container := forms.Container(wanted)
	old := namedEntry(r.tree, container)
	if old == nil {
		return f, nil
	}
	p.recognize(old, known)
	if !old.Ours() && !want.Foreign {
		return f, &ForeignError{at, old.Command}
	}
	if !r.may {
		return f, &RefusedError{File: at, err: errReadOnly}
	}
	f.Old = r.data
	if was, ok := restored(at, r, container, known); ok {
		f.New, f.note = p.left(at, was), lastOf(known)
		return f, nil
	}
	n := lastOf(known)
	body, ok := removed(form, r, container, n.Drop)
	if !ok {
		return f, &RefusedError{File: at, err: forms.ErrNotUnderstood}
	}
	f.New, f.note = r.with(body), n
	if tree, err := form.Decode(body); n.Made && err == nil && forms.Same(tree, map[string]any{}) {
		f.New = p.left(at, nil)
	}
	return f, nil
}

// left is what an uninstall leaves of a file. Of one that is a link now, somebody else decides whether it is there.
func (p Places) left(at string, content []byte) []byte {
	info, err := os.Lstat(p.real(at))
	if content == nil && err == nil && info.Mode()&os.ModeSymlink != 0 {
		return []byte{}
	}
	return content
}
