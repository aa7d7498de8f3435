package bash

import (
	"strings"

	"codehand/tools/bash/programs"
)

// maxPerhapsRuns bounds the bytes of Part.Perhaps: the words of a command are there once for each of them.
const maxPerhapsRuns = 1 << 18

// mayRun adds commands that an unknown program may run: `ifne rm x` runs `rm x`, and so does `fly ssh -C 'rm x'`. whole
// is false if that is more than maxPerhapsRuns.
func (p *Part) mayRun(c *simple) (whole bool) {
	room := maxPerhapsRuns
	add := func(name, rest string) {
		if room -= len(name) + len(rest); name != "" && room >= 0 {
			p.Perhaps = append(p.Perhaps, strings.Trim(name+" "+rest, wordBreaks))
		}
	}
	for _, h := range c.heads {
		words := c.words[h.at:h.end]
		if h.quiet || !unknownProgram(words[0].name()) {
			continue
		}
		for i := 1; i < len(words) && room >= 0; i++ {
			text := words[i].text
			if words[i].bare == "" || words[i].bare[0] == '-' {
				_, text, _ = strings.Cut(text, "=")
			} else {
				add(words[i].name(), joined(words[i+1:]))
			}
			// the commands that may stand in a text, as `system("rm x")` has one
			for piece := range strings.FieldsFuncSeq(text, endsCommand) {
				name, rest, _ := strings.Cut(strings.Trim(piece, wordBreaks), " ")
				add(name[strings.LastIndexByte(name, '/')+1:], rest)
			}
		}
	}
	return room >= 0
}

func endsCommand(c rune) bool { return strings.ContainsRune(";|&\n(){}[]`\"'!:=", c) }

// unknownProgram says whether a program may do anything with its words: it has no row, and is no command of bash that
// runs none of them.
func unknownProgram(name string) bool {
	row := programs.Of(name)
	if row != nil {
		return row.Looked == "unseen" && row.Takes().Kind != "command" && !row.Reads && !understood(row)
	}
	return !isOneOf(name, "unlink dirs suspend logout fc ] pidof apropos whatis info")
}
