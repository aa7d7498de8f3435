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

	name    string            // of the program
	row     *programs.Program // nil: the table does not have the program
	read    bool
	reading reading // once read: see simple.reading
}

// newHead is the head at words[at].
func newHead(words []spelt, at, end int, via string) head {
	name := words[at].name()
	return head{at: at, end: end, via: via, name: name, row: programs.Of(name)}
}

// headsOf finds all heads of words, which are not empty; the sure ones first, from the outside in.
func headsOf(words []spelt) []head {
	heads := make([]head, 1)
	heads[0] = newHead(words, 0, len(words), "")
	at := 0
	for {
		h := &heads[len(heads)-1]
		h.sure = true
		name := h.name
		if name == "find" || name == "gfind" {
			return append(heads, findHeads(words, at, name)...)
		}
		if len(heads) > maxHeads || !wraps(h.row) || at+1 == len(words) || asks(name, words[at+1].bare) {
			break
		}
		h.read, h.reading = true, readAs(h.row, words[at+1:])
		next, certain := h.reading.behind()
		next += at
		if !certain {
			for i := next; i < len(words) && len(heads) <= maxHeads; i++ {
				heads = append(heads, newHead(words, i, len(words), name))
			}
			return heads
		}
		if next == len(words) {
			break
		}
		at = next
		heads = append(heads, newHead(words, at, len(words), name))
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
			h := newHead(words, i, len(words), words[last].name())
			h.quiet = true
			heads = append(heads, h)
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
		for n, h := range headsOf(words[i+1 : end]) {
			h.at, h.end = h.at+i+1, h.end+i+1
			if n == 0 {
				h.via = name
			}
			heads = append(heads, h)
		}
	}
	return heads
}
