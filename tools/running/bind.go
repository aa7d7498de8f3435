package running

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// Bind holds a command against the disk that is proved to change nothing, or is as soon as it is bound
// (Analysis.IfBound): what it opens must be what read_file may open. It notes in a what rules are about, so that they
// decide before the command runs, and the text that is to run. In that text every glob is replaced. Where that cannot
// be done, such as for a glob that also leads out of the roots, nothing is proved of the command.
//
// strict: such a command, and a path that leads out of the roots, is refused (tool.Refusal). Else the error is nil, the
// decision about the call sees where it leads, and a command of which nothing is proved runs as written, if it may.
func Bind(s *session.State, a *bash.Analysis, command string, strict bool) error {
	if a.Class != bash.ReadOnly && !a.IfBound || s.Space == nil || s.Rules == nil {
		return nil
	}
	b := &binding{env: tool.Env{State: s}, strict: strict, left: maxEntries}
	bound, err := b.bind(command)
	refused, ok := errors.AsType[*tool.Refusal](err)
	if ok && !strict {
		b.tell(a) // what was seen before the refusal counts, too
		why, _, _ := strings.Cut(refused.Text, ". ")
		a.Doubt(why)
		return nil
	}
	if err != nil {
		return err
	}
	b.tell(a)
	a.Proved(bound.Text)
	// what the text alone tells of them stays: it is seen again from where links led meanwhile
	a.Spreads = append(slices.Clip(a.Spreads), bound.Spreads...)
	return nil
}

// tell adds to a what the disk says of the files of the command.
func (b *binding) tell(a *bash.Analysis) {
	a.Noted = b.ruled
	a.Files = append(slices.Clip(a.Files), b.ruled...)
}

// Ready returns the text to run of a command that was decided about. It refuses one that was let through as one that
// only reads, if it does more by now, or would read other files than those that the decision was about.
func Ready(env tool.Env, command string, strict bool) (string, error) {
	a := env.Analysis
	if a.Class != bash.ReadOnly || a.Bound == "" {
		return command, nil
	}
	if err := stillReads(env, command); err != nil {
		return "", err
	}
	b := &binding{env: env, strict: strict, left: maxEntries}
	bound, err := b.bind(command)
	refused, ok := errors.AsType[*tool.Refusal](err)
	lost := ok && refused.Code == tool.NotReadOnly && !strict // a glob leads out of the roots by now
	if err != nil && !lost {
		return "", err
	}
	if lost || b.differs(a, bound.Text) {
		return "", tool.Refuse(tool.Busy, "What %q reads is being changed by another process. Nothing was run. Try "+
			"again.", wording.Clip(command, 200))
	}
	return bound.Text, nil
}

// differs says whether the command would read other files, as text, than those that the decision was about.
func (b *binding) differs(a *bash.Analysis, text string) bool {
	ruled := b.worst != permission.Allow || b.env.Rules.Compares(false)
	undecided := func(u bash.FileUse) bool { return !slices.Contains(a.Noted, u) }
	return b.worst == permission.Deny || ruled && text != a.Bound || slices.ContainsFunc(b.ruled, undecided)
}

const (
	// maxEntries is how many entries of directories are looked at for one command.
	maxEntries = 50_000
	// maxBound is how many bytes a command may have with all files named: the kernel takes 128 KiB for one argument.
	maxBound = 100_000
	// maxDown is how deep a program is followed that goes through links.
	maxDown = 100
)

// A binding looks at the disk for the words of one command.
type binding struct {
	env    tool.Env
	strict bool
	left   int // entries that may still be looked at
	size   int // bytes of what was found

	ruled []bash.FileUse     // what a rule is about, and what is outside where that is not refused
	worst permission.Verdict // about ruled
}

func (b *binding) bind(command string) (bash.Bound, error) {
	b.worst = permission.Allow
	cwd := b.env.Space.Cwd()
	p, err := b.env.Space.Open(cwd, workspace.Read)
	if roots := b.env.Space.Roots(); errors.Is(err, fs.ErrNotExist) && len(roots) > 0 {
		cwd = roots[0] // as Dir does
		p, err = b.env.Space.Open(cwd, workspace.Read)
	}
	if err != nil {
		return bash.Bound{}, wording.PathRefusal(b.env, cwd, err)
	}
	_ = p.Dir.Close() // only looked at
	bound, err := bash.Bind(command, p.Path, b.look)
	if not, ok := errors.AsType[*bash.UnboundError](err); ok {
		return bash.Bound{}, NotReadOnly(command, not.Why)
	}
	if err == nil && len(bound.Text) > max(maxBound, len(command)) {
		return bash.Bound{}, tooMany(command)
	}
	return bound, err
}

func tooMany(what string) error {
	return tool.Refuse(tool.InputInvalid, "%q matches more files than one command can take. Name a smaller "+
		"directory, or let grep -r or find go through it.", wording.Clip(what, 200))
}

// look is asked by bash.Bind.
func (b *binding) look(dir string, w bash.Word) (bash.Found, error) {
	if w.Look == bash.Module {
		return b.module(dir, w.Text)
	}
	if w.Glob == "" {
		return b.word(dir, w.Text, w.Look)
	}
	g := globbing{b: b, dir: dir, look: w.Look, free: w.Look&bash.Unopened != 0}
	err := g.below(from(dir, w.Glob), "", strings.Split(w.Glob, "/"))
	if err == nil && g.outside {
		err = &bash.UnboundError{Why: "glob " + wording.Clip(w.Text, 80) + " also leads out of the roots"}
	}
	if err != nil {
		return bash.Found{}, err
	}
	if len(g.all.Words) == 0 {
		g.all.Words = []string{w.Text} // as bash does
	}
	return g.all, nil
}

// from is where a path starts.
func from(dir, text string) string {
	if strings.HasPrefix(text, "/") {
		return "/"
	}
	return dir
}

// safe is a name of a file that no program takes for anything else.
func safe(name string) string {
	if name != "" && strings.IndexByte("-+@~=", name[0]) >= 0 {
		return "./" + name
	}
	return name
}

// word looks at what a word names, seen from dir.
func (b *binding) word(dir, text string, look bash.Look) (bash.Found, error) {
	abs := path.Join(from(dir, text), text)
	itself := look&bash.Itself != 0 && !b.env.Space.NamesDir(text)
	t, err := b.reach(abs, itself)
	switch _, out := errors.AsType[*workspace.OutsideError](err); {
	case out && !b.strict:
		b.note(abs, permission.Ask)
		return bash.Found{}, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, workspace.ErrTooManyLinks):
		return b.missing(dir, text, abs, look)
	case err != nil:
		return bash.Found{}, wording.PathRefusal(b.env, abs, err)
	}
	if kind := kindOf(t.info); kind != "" && look&bash.Contents != 0 {
		return bash.Found{}, tool.Refuse(tool.NotRegular, "%s is a %s. Only regular files can be used.", abs, kind)
	}
	b.judge(abs, t, look&bash.Contents != 0)
	var f bash.Found
	if t.info.IsDir() {
		f.Dir = t.path
	}
	if t.path != abs || strings.Contains(text, "..") {
		f.Words = []string{b.spelt(dir, text, t.path)}
	}
	if look&bash.Down != 0 && t.info.IsDir() {
		d := downward{b: b, look: look, seen: map[string]bool{}, more: []string{t.path}}
		if err := d.enter(t.path, 0); err != nil {
			return f, err
		}
		for _, more := range d.more[1:] {
			f.More = append(f.More, b.spelt(dir, text, more))
		}
	}
	return f, nil
}

// missing is what a word stays that names nothing. A link that leads nowhere is one to programs that show names.
func (b *binding) missing(dir, text, abs string, look bash.Look) (bash.Found, error) {
	if look&bash.Maybe != 0 {
		return bash.Found{}, nil
	}
	if look&(bash.Contents|bash.Enters) == 0 {
		if t, err := b.lookAt(abs); err == nil && t.info != nil {
			if _, err := b.reach(abs, false); err == nil { // it has just been made
				return bash.Found{}, wording.PathRefusal(b.env, abs, workspace.ErrChanging)
			}
			return bash.Found{Words: []string{b.spelt(dir, text, t.path)}}, nil
		}
	}
	return bash.Found{Words: []string{bash.Nowhere + text}}, nil
}

// spelt is a path that stands for text: relative to dir if that was, and below dir.
func (b *binding) spelt(dir, text, real string) string {
	if rel, err := filepath.Rel(dir, real); err == nil && !strings.HasPrefix(text, "/") && filepath.IsLocal(rel) {
		return safe(rel)
	}
	return real
}

// A thing is what a path leads to.
type thing struct {
	path string // canonical
	info fs.FileInfo
	also []string // its other names in the roots
	sure bool     // that these are all
}

// reach resolves an absolute path. itself: if it is a link, it is the link that is asked about.
func (b *binding) reach(abs string, itself bool) (thing, error) {
	if itself {
		t, err := b.lookAt(abs)
		if err != nil || t.info != nil {
			return t, err
		}
	}
	p, err := b.env.Space.Open(abs, workspace.Read)
	if err != nil {
		return thing{}, err
	}
	defer p.Dir.Close()
	info, err := p.Dir.Lstat(p.Name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = workspace.ErrChanging
	}
	t := thing{path: p.Path, info: info}
	if err == nil {
		t.also, t.sure = b.env.Space.NamesOf(p, info)
	}
	return t, err
}

// lookAt finds a link; what it returns has no info if there is none.
func (b *binding) lookAt(abs string) (thing, error) {
	up := path.Dir(abs)
	p, err := b.env.Space.Open(up, workspace.Read)
	if outside := (*workspace.OutsideError)(nil); errors.As(err, &outside) && outside.Link == "" {
		return thing{}, nil // of an area itself
	}
	if err != nil {
		return thing{}, err
	}
	defer p.Dir.Close()
	info, err := p.Dir.Lstat(path.Join(p.Name, path.Base(abs)))
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return thing{}, nil // Open says it better
	}
	return thing{path: path.Join(p.Path, path.Base(abs)), info: info, sure: true}, nil
}

// kindOf names what read_file does not open; "": it does, or it is a directory.
func kindOf(info fs.FileInfo) string {
	switch mode := info.Mode(); {
	case mode.IsRegular(), mode.IsDir(), mode&fs.ModeSymlink != 0:
		return ""
	case mode&fs.ModeNamedPipe != 0:
		return "FIFO"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// judge asks the rules about every name of what is read. A name that says that it holds a secret counts for contents.
func (b *binding) judge(abs string, t thing, contents bool) {
	rules := b.env.Rules
	worst := permission.Allow
	if !t.sure && rules.Compares(false) {
		worst = permission.Ask
	}
	for _, name := range append([]string{abs, t.path}, t.also...) {
		v := rules.Ruled(name, false)
		switch {
		case rules.Hidden(name):
			v = permission.Deny
		case v == permission.Allow && contents && rules.SecretName(name):
			v = permission.Ask
		}
		worst = min(worst, v)
	}
	if worst != permission.Allow {
		b.note(abs, worst)
	}
}

// note keeps a path for the decision. It keeps the spelling of the command: not every caller may learn where a link
// leads.
func (b *binding) note(abs string, v permission.Verdict) {
	b.worst = min(b.worst, v)
	b.ruled = append(b.ruled, bash.FileUse{Path: abs})
}

// directory opens the directory at abs and returns its canonical path; nil: there is none, or it must not be listed.
func (b *binding) directory(abs string) (dir *os.Root, real string, err error) {
	p, err := b.env.Space.Open(abs, workspace.Read)
	if err != nil {
		return nil, "", err
	}
	defer p.Dir.Close()
	dir, err = p.Dir.OpenRoot(p.Name + "/.") // a FIFO would be waited for
	if err != nil {
		return nil, "", nil // bash finds nothing there, either
	}
	return dir, p.Path, nil
}

// list is what is in a directory, in the order of bash.
func (b *binding) list(dir *os.Root) ([]fs.DirEntry, error) {
	list, err := dir.Open(".")
	if err != nil {
		return nil, nil // bash cannot list it, either
	}
	defer list.Close()
	names, err := list.ReadDir(max(b.left, 1))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil // likewise
	}
	if b.left -= len(names); b.left <= 0 {
		return nil, tool.Refuse(tool.InputInvalid, "%d files and more would have to be looked at for what the "+
			"command names. Name a smaller directory, or leave out the option that follows links.", maxEntries)
	}
	slices.SortFunc(names, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	return names, nil
}

// A globbing expands one word as bash does without options: `**` is `*`, and hidden names must be asked for.
type globbing struct {
	b       *binding
	dir     string
	look    bash.Look
	free    bool // what is found is not opened
	all     bash.Found
	outside bool // part of it is outside, and that is not refused
}

// below appends what the components match in the directory at abs; shown is what stands before them.
func (g *globbing) below(abs, shown string, components []string) error {
	name, rest := components[0], components[1:]
	switch glob, last := bash.GlobName(name), len(rest) == 0; {
	case g.outside:
		return nil
	case name == "" && last: // `*/`
		return g.take(shown, abs, false)
	case name == "":
		return g.below(abs, shown+"/", rest)
	case glob.Several():
		return g.match(abs, shown, glob, rest)
	case last:
		return g.take(shown+glob.Literal, path.Join(abs, glob.Literal), true)
	default:
		return g.below(path.Join(abs, glob.Literal), shown+glob.Literal+"/", rest)
	}
}

// match goes on with each entry that a glob matches.
func (g *globbing) match(abs, shown string, glob bash.NameGlob, rest []string) error {
	dir, real, err := g.b.directory(abs)
	if err != nil || dir == nil {
		return g.failed(abs, err)
	}
	defer dir.Close()
	entries, err := g.b.list(dir)
	for _, e := range entries {
		if !glob.Matches(e.Name()) {
			continue
		}
		switch at := path.Join(abs, e.Name()); {
		case len(rest) == 0 && e.Type().IsRegular():
			p := workspace.Place{Dir: dir, Name: e.Name(), Path: path.Join(real, e.Name())}
			err = g.file(at, shown+e.Name(), p)
		case len(rest) == 0:
			err = g.found(at, shown+e.Name(), path.Join(real, e.Name()))
		case e.IsDir(), e.Type()&fs.ModeSymlink != 0:
			err = g.below(at, shown+e.Name()+"/", rest)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// file takes a regular file that was met, which need not be looked for again.
func (g *globbing) file(at, shown string, p workspace.Place) error {
	t := thing{path: p.Path}
	info, err := p.Dir.Lstat(p.Name)
	if err == nil {
		t.also, t.sure = g.b.env.Space.NamesOf(p, info)
	}
	g.b.judge(at, t, g.look&bash.Contents != 0)
	if t.path != at && !g.free {
		shown = g.b.spelt(g.dir, shown, t.path)
	}
	return g.add(safe(shown))
}

// found takes what else was met.
func (g *globbing) found(at, shown, real string) error {
	if g.free {
		g.b.judge(at, thing{path: real, sure: true}, false)
		return g.add(safe(shown))
	}
	f, err := g.b.word(g.dir, shown, g.look)
	if err != nil {
		return err
	}
	if f.Dir != "" {
		g.all.Dir = f.Dir
	}
	g.all.More = append(g.all.More, f.More...)
	if f.Words == nil {
		return g.add(safe(shown))
	}
	return g.add(f.Words[0])
}

// take takes what no glob is the last component of, if it is there. link: a link is enough, wherever it leads.
func (g *globbing) take(word, abs string, link bool) error {
	t, err := g.b.reach(abs, link)
	switch {
	case err != nil:
		return g.failed(abs, err)
	case !link && !t.info.IsDir():
		return nil
	}
	return g.found(abs, word, t.path)
}

func (g *globbing) add(word string) error {
	g.all.Words = append(g.all.Words, word)
	if g.b.size += len(word) + 1; g.b.size > maxBound {
		return tooMany(word)
	}
	return nil
}

// failed says what it means for a glob that a path cannot be reached: mostly that nothing is there.
func (g *globbing) failed(abs string, err error) error {
	_, out := errors.AsType[*workspace.OutsideError](err)
	_, refused := errors.AsType[*tool.Refusal](err)
	switch {
	case out && !g.b.strict:
		g.b.note(abs, permission.Ask)
		g.outside = true
		return nil
	case refused, out, errors.Is(err, workspace.ErrSystem), errors.Is(err, workspace.ErrChanging):
		return wording.PathRefusal(g.b.env, abs, err)
	}
	return nil
}

// A downward goes where a program goes that follows links.
type downward struct {
	b    *binding
	look bash.Look
	seen map[string]bool // directories, canonical
	more []string        // where links lead, canonical, if the program does not come there anyway; the first: its start
}

func (d *downward) enter(abs string, depth int) error {
	dir, real, err := d.b.directory(abs)
	if err != nil || dir == nil || d.seen[real] {
		if dir != nil {
			_ = dir.Close() // only looked at
		}
		return d.failed(abs, err)
	}
	return d.directory(dir, real, depth)
}

// directory goes through dir, which stands at real, and closes it.
func (d *downward) directory(dir *os.Root, real string, depth int) error {
	defer dir.Close()
	if depth > maxDown {
		return tooMany(real)
	}
	d.seen[real] = true
	entries, err := d.b.list(dir)
	for _, e := range entries {
		at := path.Join(real, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			err = d.link(at, depth)
		case e.IsDir() && d.look&bash.Near == 0 && !d.seen[at]:
			if sub, fault := dir.OpenRoot(e.Name() + "/."); fault == nil { // else the program cannot go there, either
				err = d.directory(sub, at, depth+1)
			}
		}
		if err != nil {
			return err
		}
	}
	return err
}

// link looks at where a link leads that a program comes to.
func (d *downward) link(at string, depth int) error {
	if d.look&bash.Module != 0 && !strings.HasSuffix(at, ".go") {
		info, err := os.Stat(at)
		if isDir := err == nil && info.IsDir(); !isDir { // go reads no such file
			return nil
		}
	}
	t, err := d.b.reach(at, false)
	if err != nil {
		return d.failed(at, err)
	}
	d.b.judge(at, t, d.look&bash.Contents != 0)
	below := func(dir string) bool { return dir == t.path || strings.HasPrefix(t.path, dir+"/") }
	if kindOf(t.info) == "" && !slices.ContainsFunc(d.more, below) {
		d.more = append(d.more, t.path)
	}
	if t.info.IsDir() && d.look&bash.Near == 0 {
		return d.enter(t.path, depth+1)
	}
	return nil
}

func (d *downward) failed(abs string, err error) error {
	switch _, out := errors.AsType[*workspace.OutsideError](err); {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, workspace.ErrTooManyLinks),
		errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrPermission):
		return nil
	case out && !d.b.strict:
		d.b.note(abs, permission.Ask)
		return nil
	}
	return wording.PathRefusal(d.b.env, abs, err)
}
