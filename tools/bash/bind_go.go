package bash

import (
	"slices"
	"strings"

	"codehand/tools/bash/programs"
)

// goReads are the directories from which go shows what is in files: of the packages that its words name, and of the
// module in which it stands, since a package may be named by its import path or its last element. nil: it shows names.
func goReads(args []spelt) (dirs []spelt) {
	if len(args) == 0 || !isOneOf(args[0].bare, "doc list vet") {
		return nil
	}
	shows := args[0].bare != "list"
	if !shows && listsModules(args[1:]) {
		return nil
	}
	for i := 1; i < len(args); i++ {
		switch option := strings.TrimLeft(args[i].bare, "-"); {
		case len(option) == len(args[i].bare):
			if w := args[i]; w.text != "" && strings.IndexByte("./", w.text[0]) >= 0 {
				w.text = strings.TrimSuffix(w.text, "/...")
				w.bare = w.text
				dirs = append(dirs, w)
			}
		case strings.HasPrefix(option, "f"), strings.HasPrefix(option, "json"):
			shows = true
		}
	}
	if !shows {
		return nil
	}
	return append(dirs, literalSpelt("."))
}

// listsModules says whether go list, of which these are the words, tells of modules and not of packages. A -m may also
// be the value of an option, or stand behind the first operand, where go takes it for a package.
func listsModules(args []spelt) bool {
	r := readAs(programs.OfSub("go", "list"), args)
	return slices.ContainsFunc(r.Options, func(o programs.Found) bool {
		return o.Option != nil && o.Name == "-m" && o.Value < 0
	})
}

// goSources are the files of which go shows what is in them.
var goSources = []string{"*.go"}

// module looks at the packages that go and gofmt may show: what is in them, and where links below them lead.
func (c *opening) module() error {
	var dirs []spelt
	switch c.name.text {
	case "go":
		dirs = goReads(c.r.args)
	case "gofmt": // in directories it follows links to files
		for _, w := range c.r.operands() {
			if w.text == "" { // there is no such file
				continue
			}
			if _, err := c.b.found(c.at, Word{Text: w.text, Look: Contents | Down | Maybe | Module}); err != nil {
				return err
			}
		}
	}
	for _, dir := range dirs {
		f, err := c.b.found(c.at, Word{Text: dir.text, Look: Module})
		if err != nil {
			return err
		}
		for _, at := range f.More {
			s := Spread{Dir: at, deep: true, dotted: true, names: goSources}
			if !slices.ContainsFunc(c.b.spreads, s.equal) {
				c.b.spreads = append(c.b.spreads, s)
			}
		}
	}
	return nil
}
