package prompts

import (
	"context"
	"strings"

	"codehand/server/resources"
	"codehand/tools/results"
)

// maxHint is how many characters of a hint are looked at.
const maxHint = 1_000

// Complete returns what the hint of a skill offers for the word that is being typed in an argument of the prompt name,
// behind the words before it.
func (l *Library) Complete(ctx context.Context, v resources.View, name, argument, typed string) ([]string, error) {
	p, err := l.Find(ctx, v, name)
	if err != nil || p == nil || p.skill == nil || argument != promptArgument {
		return nil, err
	}
	before := typed[:strings.LastIndexAny(typed, " \t")+1]
	var all []string
	for _, word := range alternatives(p.skill.Hint, len(strings.Fields(before))) {
		all = append(all, before+word)
	}
	return all, nil
}

// alternatives are the words that a hint such as `[major|minor|patch] <file>` offers for argument n, from 0. An
// argument whose description offers no choice has none.
func alternatives(hint string, n int) []string {
	hint = strings.NewReplacer(" | ", "|", " |", "|", "| ", "|").Replace(results.Line(hint, maxHint))
	for part := range strings.FieldsSeq(hint) {
		if n > 0 {
			n--
			continue
		}
		words := strings.Split(strings.Trim(part, "[]<>(){}."), "|")
		if len(words) < 2 {
			return nil
		}
		var all []string
		for _, w := range words {
			// A word with invisible characters would be sent as what it does not look like.
			if w = strings.Trim(w, "[]<>(){}'\"`"); w != "" && w == results.Clean(w) {
				all = append(all, w)
			}
		}
		return all
	}
	return nil
}
