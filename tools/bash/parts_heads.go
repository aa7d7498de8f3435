package bash

import "codehand/tools/bash/programs"

// maxHeads bounds the places in one command at which another may begin; what has more is not read.
const maxHeads = 256

// A head is a place in the words of a simple command from which they may be a command of their own: the beginning, and
// what comes behind wrappers.
type head struct {
	at, end int
	sure    bool   // it is known to be there
	quiet   bool   // the command is known to be elsewhere; what stands here is probably its argument
	via     string // the wrapper before it, "" for the first
}

// headsOf finds all heads of words, which are not empty; the sure ones first, from the outside in.
func headsOf(words []spelt) []head {
	heads := make([]head, 1, 2)
	heads[0] = head{end: len(words), sure: true}
	at := 0
	for {
		name := words[at].name()
		if name == "find" || name == "gfind" {
			return append(heads, findHeads(words, at, name)...)
		}
		row := programs.Of(name)
		if !wraps(row) || at+1 == len(words) || asks(name, words[at+1].bare) {
			break
		}
		next, certain := behind(row, words[at:])
		next += at
		if !certain {
			for i := next; i < len(words); i++ {
				heads = append(heads, head{at: i, end: len(words), via: name})
			}
			return heads
		}
		if next == len(words) {
			break
		}
		at = next
		heads = append(heads, head{at: at, end: len(words), sure: true, via: name})
	}
	if len(heads) == 1 {
		return heads
	}
	return addQuiet(heads, words, at)
}

// asks says whether `command -v x` only asks what x is.
func asks(name, option string) bool {
	return name == "command" && (option == "-v" || option == "-V")
}

// addQuiet adds each other word as a head, in case that a program reads its options differently.
func addQuiet(heads []head, words []spelt, last int) []head {
	sure := heads
	for i := 1; i < len(words) && len(heads) < maxHeads; i++ {
		known := false
		for _, h := range sure {
			known = known || h.at == i
		}
		if !known {
			heads = append(heads, head{at: i, end: len(words), quiet: true, via: words[last].name()})
		}
	}
	return heads
}

// findHeads are the commands behind -exec and the like.
func findHeads(words []spelt, at int, name string) []head {
	var heads []head
	for i := at + 1; i+1 < len(words); i++ {
		switch words[i].bare {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			continue
		}
		end := i + 1
		for end < len(words) && words[end].bare != ";" && (words[end].bare != "+" || words[end-1].bare != "{}") {
			end++
		}
		if end == i+1 {
			continue
		}
		heads = append(heads, head{at: i + 1, end: end, sure: true, via: name})
		inner := headsOf(words[i+1 : end])
		for _, h := range inner[1:] {
			h.at, h.end = h.at+i+1, h.end+i+1
			heads = append(heads, h)
		}
	}
	return heads
}
