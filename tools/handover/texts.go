package handover

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"codehand/tools/secrets"
	"codehand/tools/wording"
)

// quoted is a text of a model, a command or a file: one line in backquotes, without what rules hide and without
// secrets.
func (d *digest) quoted(text string) string {
	return inBackquotes(wording.LineOf(d.concealed(secrets.Redact(text)), maxText))
}

// inBackquotes is a line as Markdown shows it unchanged, whatever backquotes are in it.
func inBackquotes(line string) string {
	longest, run := 0, 0
	for _, c := range line {
		if run++; c != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	if longest == 0 {
		return "`" + line + "`"
	}
	fence := strings.Repeat("`", longest+1)
	return fence + " " + line + " " + fence
}

// hidden stands where a text names a file that rules hide.
const hidden = "[hidden by a rule]"

// mostWords is how many words of a text are held against the rules; a text has fewer that are shown.
const mostWords = 100

// word is what may be the name of a file in a text of any kind. Quotes and what parts words in a shell end it.
var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("[^\\s\"'`;|&<>()=,:{}\\[\\]]+") })

// entering are words after which a text names a directory to which names behind it may be relative.
var entering = []string{"cd", "pushd", "-C"}

// concealed is a text in which no word names a file that rules hide. A word counts as it stands, below each root, below
// the current directory, and below each directory that the text enters before it, as in `cd DIR && cat FILE`.
func (d *digest) concealed(text string) string {
	dirs := append([]string{d.env.Space.Cwd()}, d.env.Space.Roots()...)
	var b strings.Builder
	end, before := 0, ""
	for i, at := range word().FindAllStringIndex(text, -1) {
		if i == mostWords {
			return b.String() + text[end:at[0]] + "…"
		}
		name := text[at[0]:at[1]]
		if d.hides(name, dirs) {
			b.WriteString(text[end:at[0]] + hidden)
			end = at[1]
		}
		if slices.Contains(entering, before) {
			dirs = append(dirs, d.env.Space.Abs(name), filepath.Join(dirs[len(dirs)-1], name))
		}
		before = name
	}
	return b.String() + text[end:]
}

// hides says whether a word names a file that rules hide.
func (d *digest) hides(name string, dirs []string) bool {
	if name = strings.TrimRight(name, ".!?"); name == "" {
		return false
	}
	paths := []string{d.env.Space.Abs(name)}
	for _, dir := range dirs {
		paths = append(paths, filepath.Join(dir, name))
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		hides, known := d.hidden[path]
		if !known {
			hides = filepath.IsAbs(path) && d.view.Hides(path)
			d.hidden[path] = hides
		}
		return hides
	})
}
