package programs

import (
	_ "embed" // a table
	"path"
	"strings"
	"sync"
)

//go:embed afar.tbl
var afarText string

// An afar is a line of afar.tbl: words by which a program acts on other machines.
type afar struct {
	words [][]string // each is there if its parts are, in their order
	why   string
}

// afars are the lines by the names of their programs.
var afars = sync.OnceValue(func() map[string][]afar {
	all := map[string][]afar{}
	for line := range strings.Lines(afarText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		names, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		words, why, _ := strings.Cut(rest, ": ")
		a := afar{why: why}
		for word := range strings.FieldsSeq(words) {
			a.words = append(a.words, strings.Split(word, "+"))
		}
		for name := range strings.SplitSeq(names, ", ") {
			all[name] = append(all[name], a)
		}
	}
	return all
})

// IsAfar says whether Afar knows the program.
func IsAfar(program string) bool { return len(afars()[path.Base(program)]) > 0 }

// Afar returns the argument by which a program acts on other machines, registries or accounts, and in some words what
// it does there; both are empty if none does. A program that always does has why alone.
func Afar(program string, args []string) (word, why string) {
	for _, a := range afars()[path.Base(program)] {
		for _, parts := range a.words {
			if parts[0] == "*" {
				return "", a.why
			}
			next := 0
			for _, arg := range args {
				if isLike(strings.ToLower(arg), parts[next]) {
					if next++; next == len(parts) {
						return strings.Join(parts[:next-1], " ") + " " + arg, a.why
					}
				}
			}
		}
	}
	return "", ""
}

// isLike says whether a word is one of the table, in which a star stands for any text.
func isLike(word, like string) bool {
	head, tail, star := strings.Cut(strings.ToLower(like), "*")
	if !star {
		return word == head
	}
	return len(word) >= len(head)+len(tail) && strings.HasPrefix(word, head) && strings.HasSuffix(word, tail)
}
