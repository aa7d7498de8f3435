package bash

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"codehand/tools/bash/programs"
)

// An opening binds the words of one command.
type opening struct {
	b    *binder
	name word
	args []word
	at   []string // where it may run

	r        reading                   // of args
	instead  map[*syntax.Word][]string // what stands for an argument
	more     []string                  // further operands
	operands int                       // paths that it is given
	stays    bool                      // it was told to follow no links
}

// bind looks at all words; paths are those that passed as paths.
func (c *opening) bind(paths []word) error {
	args := make([]spelt, len(c.args))
	for i, w := range c.args {
		args[i] = spelt{text: w.text, bare: w.text}
	}
	c.r = read(c.name.text, args)
	from := 0
	if c.name.text == "git" {
		var err error
		if from, err = c.enterGit(paths); err != nil {
			return err
		}
	}
	look := c.look()
	for i := from; i < len(c.args); i++ {
		if err := c.argument(i, paths, look); err != nil {
			return err
		}
	}
	if look&Down != 0 {
		if err := c.down(look); err != nil {
			return err
		}
	}
	c.spread()
	return c.module()
}

// argument binds one argument.
func (c *opening) argument(i int, paths []word, look Look) error {
	w := c.args[i]
	at := slices.IndexFunc(paths, func(p word) bool { return p.in == w.in })
	switch use, tested := c.tested(i); {
	case tested:
		return c.word(w, use)
	case w.glob() && strings.HasPrefix(w.text, "-"): // no file is meant by `--include=*.go`
		c.put(w, []string{w.text})
	case at >= 0:
		return c.word(paths[at], look)
	case w.glob() && c.opens():
		return c.word(w, look) // of several names, all but the first are files
	case w.glob():
		return c.word(w, Unopened)
	}
	return nil
}

// opens says whether the operands of the program are files, but for one before them.
func (c *opening) opens() bool {
	if c.r.row == nil {
		return false
	}
	takes := c.r.row.Takes()
	return takes.First != "" && takes.Kind == "path"
}

// put lets others stand for an argument; none: it stays.
func (c *opening) put(w word, with []string) {
	c.b.replace(w, with)
	if with != nil && w.skip == 0 {
		if c.instead == nil {
			c.instead = map[*syntax.Word][]string{}
		}
		c.instead[w.in] = with
	}
}

// spread notes from where the program goes down and reads what it finds.
func (c *opening) spread() {
	args := make([]spelt, 0, len(c.args)+len(c.more))
	for i, w := range c.args {
		with, ok := c.instead[w.in]
		if !ok {
			args = append(args, c.r.args[i])
		}
		for _, text := range with {
			args = append(args, literalSpelt(text))
		}
	}
	for _, text := range c.more {
		args = append(args, literalSpelt(text))
	}
	name := c.name.text
	r := read(name, args)
	reads, writes := operandsOf(name, &r)
	s, roots := deepOf(&r, reads, writes, false)
	switch {
	case c.stays:
		roots = reads
	case name == "gofmt":
		roots = r.operands()
	}
	s.deep = true
	for _, dir := range c.at {
		for _, root := range roots {
			if s.Dir = root.text; !strings.HasPrefix(s.Dir, "/") {
				s.Dir = path.Join(dir, s.Dir)
			}
			c.b.spreads = append(c.b.spreads, s)
		}
	}
}

// word binds one word.
func (c *opening) word(w word, look Look) error {
	q := w.toWord(look)
	behind := ""
	if c.name.text == "go" {
		switch {
		case q.Text == "":
			return nil
		case strings.IndexByte("./", q.Text[0]) >= 0:
		case strings.HasSuffix(q.Text, ".go"): // if it is there, go takes it for a file, else for an import path
			q.Look |= Maybe
		default:
			return nil // a package that the module names
		}
		if dir, ok := strings.CutSuffix(q.Text, "/..."); ok && q.Glob == "" && dir != "" {
			q.Text, behind = dir, "/..."
		}
	}
	if q.Text == "" {
		return nil
	}
	f, err := c.b.found(c.at, q)
	if err != nil {
		return err
	}
	if c.name.text == "go" {
		for i, dir := range f.Words {
			if dir != "." && !strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, "./") {
				dir = "./" + dir
			}
			f.Words[i] = dir + behind
		}
	}
	c.put(w, f.Words)
	if w.skip == 0 && look&Unopened == 0 {
		c.operands++
	}
	if c.r.row.Has("stays") && f.Dir != "" && !c.stays { // it reads what links in a directory lead to
		c.stays = true
		c.b.insert(c.name, " --no-dereference")
	}
	if look&Contents != 0 { // else it goes there itself
		c.more = append(c.more, f.More...)
		c.b.insert(w, joinWords(f.More))
	}
	return nil
}

// insert puts text behind a word.
func (b *binder) insert(w word, text string) {
	if end := int(w.in.End().Offset()); text != "" {
		b.edits = append(b.edits, edit{end, end, text})
	}
}

func joinWords(words []string) string {
	var all strings.Builder
	for _, w := range words {
		all.WriteString(" " + quoteWord(w))
	}
	return all.String()
}

// enter goes to the directory that w names from each of the places at.
func (c *opening) enter(w *word, at []string) (there []string, err error) {
	if w.text == "" { // git stays
		return at, nil
	}
	var with []string
	for i, dir := range at {
		f, err := c.b.look(dir, w.toWord(Enters))
		if err != nil {
			return nil, err
		}
		if i > 0 && !slices.Equal(with, f.Words) {
			return nil, &UnboundError{"the directory from which it goes to " + snippet(w.text) + " is not certain"}
		}
		if with = f.Words; f.Dir != "" {
			there = union(there, []string{f.Dir})
		}
	}
	c.b.replace(*w, with)
	return there, nil
}

// enterGit follows -C of git. It returns how many words that are.
func (c *opening) enterGit(paths []word) (n int, err error) {
	for n < len(c.args) && strings.HasPrefix(c.args[n].text, "-") {
		if n++; c.args[n-1].text != "-C" || n == len(c.args) {
			continue
		}
		if i := slices.IndexFunc(paths, func(p word) bool { return p.in == c.args[n].in }); i >= 0 {
			if c.at, err = c.enter(&paths[i], c.at); err != nil {
				return n, err
			}
		}
		n++
	}
	return n, nil
}

// has says whether one of the options is given.
func (c *opening) has(names ...string) bool { return c.r.has(names...) != "" }

// look is what is done with the paths of a command.
func (c *opening) look() (l Look) {
	row := c.r.row
	if c.name.text == "ls" {
		return c.listed()
	}
	if !row.Has("names") && (row == nil || !isOneOf(row.Takes().Kind, "text name format command")) {
		l = Contents
	}
	if row.Has("itself") != c.r.told(programs.Turns) {
		l |= Itself
	}
	if row.Has("maybe") {
		l |= Maybe
	}
	if c.r.does(programs.Deep) && c.r.does(programs.Follows) && !row.Has("stays") {
		l |= Down
	}
	return l
}

// listed is what ls does with its operands: without some options it goes through a link to a directory.
func (c *opening) listed() (l Look) {
	switch {
	case c.has("-L") && c.has("-R", "--recursive"):
		return Down
	case c.has("-L"):
		return Down | Near
	case c.has("-H"):
		return 0
	case c.has("-d", "--directory"),
		c.has("-l", "-g", "-n", "-o") && !c.has("-C", "-x", "-m", "--format"),
		c.has("-F", "--classify") && !c.has("-p", "--file-type", "--indicator-style"):
		return Itself
	}
	return 0
}

// tested says whether the word at i is one that no list takes for a path, but that is looked for on the disk.
func (c *opening) tested(i int) (l Look, ok bool) {
	w := c.args[i]
	switch c.name.text {
	case "which", "type", "command":
		return 0, strings.Contains(w.text, "/") && !strings.HasPrefix(w.text, "-")
	case "test", "[":
	default:
		return 0, false
	}
	if i > 0 {
		switch op := c.args[i-1].text; op {
		case "-L", "-h":
			return Itself, true
		case "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-S", "-p", "-b", "-c", "-g", "-u", "-k", "-O", "-G", "-N",
			"-nt", "-ot", "-ef":
			return 0, c.name.text == "test" || i+1 < len(c.args)
		}
	}
	if i+1 < len(c.args) {
		op := c.args[i+1].text
		return 0, op == "-nt" || op == "-ot" || op == "-ef"
	}
	return 0, false
}

// down keeps a program from going through links: what they lead to was named for it. Programs that show names only go
// as they were told, since nothing that they come to is outside.
func (c *opening) down(look Look) error {
	grep := strings.HasSuffix(c.name.text, "grep")
	if !grep && c.name.text != "rg" {
		if c.operands > 0 {
			return nil
		}
		_, err := c.b.found(c.at, Word{Text: ".", Look: look})
		return err
	}
	stays := map[int]string{}
	for i := len(c.r.Options) - 1; i >= 0; i-- { // from behind, so that the places in a cluster hold
		if o := &c.r.Options[i]; o.Option != nil && o.Does&programs.Follows != 0 {
			text, ok := stays[o.At]
			if !ok {
				text = c.args[o.At].text
			}
			stays[o.At] = staying(text, o.From, grep)
		}
	}
	for at, text := range stays {
		c.put(c.args[at], []string{text})
	}
	if c.operands > 0 {
		return nil
	}
	f, err := c.b.found(c.at, Word{Text: ".", Look: look})
	switch {
	case err != nil || len(f.More) == 0:
		return err
	case !grep: // it may read its standard input
		return &UnboundError{"rg follows links below a directory that it does not name"}
	}
	last := c.name
	if len(c.args) > 0 {
		last = c.args[len(c.args)-1]
	}
	c.more = append([]string{"."}, f.More...)
	c.b.insert(last, joinWords(c.more))
	return nil
}

// staying is an option of grep or rg without what makes it follow links: a long name, or the letter at a place of a
// cluster.
func staying(option string, at int, grep bool) string {
	switch {
	case at == 0 && grep:
		return "--recursive"
	case at == 0, option == "-L":
		return "--no-follow"
	case grep:
		return option[:at] + "r" + option[at+1:]
	}
	return option[:at] + option[at+1:]
}
