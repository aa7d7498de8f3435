package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"codehand/tools/bash/programs"
)

// poisons says whether assigning to a variable changes what later programs run. PATH is none of them: see environment.
func poisons(name string) bool {
	return programs.Obeyed()[name] || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") ||
		strings.HasPrefix(name, "GIT_")
}

// environment is D4.
func (k *check) environment(c *simple) {
	declares := false
	if c.node != nil {
		_, declares = c.node.(*syntax.DeclClause)
	}
	for _, a := range c.assigns {
		if a.Name == nil { // `export "X=1"` is among the words
			continue
		}
		name := a.Name.Value
		if a.Naked || name == "IFS" && len(c.words) > 0 && splits(c.words[0].bare) {
			continue
		}
		if poisons(name) || name == "PATH" && len(c.words) > 0 && !declares {
			k.poison(name)
		}
	}
	if declares {
		k.assignedWords(c.words[1:], false)
	}
	for _, h := range c.heads {
		switch h.name {
		case "env", "sudo", "doas":
			k.assignedWords(c.words[h.at+1:h.end], true)
		case "declare", "export", "typeset", "local", "readonly": // behind a wrapper these are ordinary words
			k.assignedWords(c.words[h.at+1:h.end], false)
		case "read", "mapfile", "readarray", "printf", "getopts":
			k.filledWords(h.name, c.words[h.at+1:h.end])
		}
	}
}

// filledWords looks at the variables that `read` and `printf -v` fill.
func (k *check) filledWords(name string, words []spelt) {
	for i := range words {
		if t := words[i].bare; (poisons(t) || t == "PATH") && (name != "printf" || i > 0 && words[i-1].bare == "-v") {
			k.poison(t)
		}
	}
}

func (k *check) poison(name string) {
	k.found("D4", name, "changes what later programs run")
}

// splits says whether IFS before this command only says how it reads.
func splits(name string) bool {
	return slices.Contains([]string{"read", "mapfile", "readarray"}, name)
}

// assignedWords looks at the NAME=value before the first word that is neither this nor an option.
func (k *check) assignedWords(words []spelt, search bool) {
	for i := range words {
		name := strings.TrimSuffix(assigned(words[i].bare), "+")
		if name != "" && (poisons(name) || search && name == "PATH") {
			k.poison(name)
		}
	}
}
