package viewing

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"codehand/tools/results"
	"codehand/tools/search"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// CoverageNotes say, each in a line, what a search did not look at. one and many name what it looks through ("file",
// "files"), whole what it answers: "list" or "result". within is the time that it had.
func CoverageNotes(c search.Coverage, within time.Duration, one, many, whole string) []string {
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
		notes = append(notes, "("+wording.Plural(n, "special file was", "special files were")+" not "+
			map[string]string{"list": "listed", "result": "read"}[whole]+".)")
	}
	switch {
	case c.Why == search.Time:
		notes = append(notes, fmt.Sprintf("(Stopped after %s: %s not %s. The %s is NOT complete.)",
			results.Seconds(within), wording.Plural(c.Left.N, one, many),
			map[string]string{"list": "visited", "result": "searched"}[whole], whole))
	case !c.Complete:
		notes = append(notes, "(The "+whole+" is NOT complete. Narrow the search with path or pattern.)")
	}
	return notes
}

// A PageNote says which part of the hits an answer shows.
type PageNote struct {
	From, Shown, Total int    // hits before, in, and with and without the answer
	One, Many          string // of what is counted
	None               string // said if there is nothing at all
	AtLeast, More      bool
	Ranked             bool // definitions come first, then the newest files
}

// Notes is empty if everything is shown. That there is nothing is only said of a search that was finished.
func (p PageNote) Notes(c search.Coverage) []string {
	switch total := AtLeast(p.AtLeast, wording.Plural(p.Total, p.One, p.Many)); {
	case p.Total == 0 && c.Complete:
		return []string{p.None}
	case p.Shown == 0 && p.Total > 0 && p.From > 0:
		return []string{"No entries at this offset (there are " + AtLeast(p.AtLeast, results.Count(p.Total)) + ")."}
	case p.Shown > 0 && p.More:
		if p.Ranked {
			total += ", definitions and newest files first"
		}
		return []string{fmt.Sprintf("(Showing %d-%d of %s. Next: offset=%d.)", p.From+1, p.From+p.Shown, total,
			p.From+p.Shown)}
	case p.Shown > 0 && p.From > 0:
		return []string{fmt.Sprintf("(Showing %d-%d of %s.)", p.From+1, p.From+p.Shown, total)}
	}
	return nil
}

// AtLeast says of a number that is only a lower bound that it is one.
func AtLeast(bound bool, n string) string {
	if bound {
		return "at least " + n
	}
	return n
}

// byDirectorySaves is how many bytes a list by directory must save. Below that the plain list is easier to read.
const byDirectorySaves = 64

// ByDirectory names each directory once, above its files, where that makes the list much shorter. Directories
// are in the order of their first file, so the newest is still on top.
func ByDirectory(names []string) []string {
	files, dirs := map[string][]string{}, []string{}
	for _, name := range names {
		dir, file := path.Split(name)
		if strings.HasPrefix(name, " ") {
			return names // it would look like a file of the directory above it
		}
		if files[dir] == nil {
			dirs = append(dirs, dir)
		}
		files[dir] = append(files[dir], file)
	}
	var lines []string
	for _, dir := range dirs {
		if len(files[dir]) == 1 || dir == "" {
			for _, file := range files[dir] {
				lines = append(lines, dir+file)
			}
			continue
		}
		lines = append(lines, dir)
		for _, file := range files[dir] {
			lines = append(lines, " "+file)
		}
	}
	if len(strings.Join(names, "\n"))-len(strings.Join(lines, "\n")) < byDirectorySaves {
		return names
	}
	return lines
}

// HereNote says for a search that found nothing that it looked at the session's directory alone, where a cd of an
// earlier command has led below the roots: the model may think that it is at the top.
func HereNote(env tool.Env, searched string) []string {
	here := env.Space.Cwd()
	if searched != here || slices.Contains(env.Space.Roots(), here) {
		return nil
	}
	return []string{"(Only " + here + " was searched, the session's current directory. Give path for another one.)"}
}
