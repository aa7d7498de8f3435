package tools

import (
	"fmt"
	"time"

	"codehand/tools/results"
	"codehand/tools/search"
	"codehand/tools/wording"
)

// coverageNotes say what a search did not look at. one and many are what it looks through, whole is what it answers.
func coverageNotes(c search.Coverage, within time.Duration, one, many, whole string) []string {
	var notes []string
	for _, left := range []struct {
		n    int
		text string
	}{
		{c.Unreadable.N, "could not be read"},
		{c.Partial.N, "with binary data searched only in part"},
		{c.TooLarge.N, "over 64 MiB not searched in multiline mode"},
		{c.LongLines.N, "with lines over 16 MiB searched only in part"},
	} {
		if left.n > 0 {
			notes = append(notes, "("+wording.Plural(left.n, one, many)+" "+left.text+".)")
		}
	}
	if n := c.Special.N; n > 0 {
		notes = append(notes, "("+wording.Plural(n, "special file was", "special files were")+" not "+map[string]string{"list": "listed", "result": "read"}[whole]+".)")
	}
	switch {
	case c.Why == search.Time:
		notes = append(notes, fmt.Sprintf("(Stopped after %s: %s not %s. The %s is NOT complete.)",
			results.Seconds(within), wording.Plural(c.Left.N, one, many), map[string]string{"list": "visited", "result": "searched"}[whole], whole))
	case !c.Complete:
		notes = append(notes, "(The "+whole+" is NOT complete. Narrow it with path or a pattern.)")
	}
	return notes
}

// A pageNote says which part of the hits an answer shows.
type pageNote struct {
	from, shown, total int
	one, many          string // of what is counted
	none               string // said if there is nothing at all
	atLeast, more      bool
}

// notes is empty if everything is shown. That there is nothing is only said of a search that was finished.
func (p pageNote) notes(c search.Coverage) []string {
	switch total := atLeast(p.atLeast, wording.Plural(p.total, p.one, p.many)); {
	case p.total == 0 && c.Complete:
		return []string{p.none}
	case p.shown == 0 && p.total > 0 && p.from > 0:
		return []string{"No entries at this offset (there are " + atLeast(p.atLeast, results.Count(p.total)) + ")."}
	case p.shown > 0 && p.more:
		return []string{fmt.Sprintf("(Showing %d-%d of %s. Next: offset=%d.)", p.from+1, p.from+p.shown, total, p.from+p.shown)}
	case p.shown > 0 && p.from > 0:
		return []string{fmt.Sprintf("(Showing %d-%d of %s.)", p.from+1, p.from+p.shown, total)}
	}
	return nil
}

func atLeast(bound bool, n string) string {
	if bound {
		return "at least " + n
	}
	return n
}
