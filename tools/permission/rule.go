package permission

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"codehand/tools/search/ignore"
)

// A Rule is one entry of a rule list, as its source wrote it.
type Rule struct {
	Text   string // `run_shell`, `Read(secrets/**)`
	Origin string // file and line, flag or environment variable
	Dir    string // directory that `/x` patterns are relative to, links resolved: that of the file, or the cwd at start
}

// A rule is a Rule that was understood: a bare name, or a pattern for paths.
type rule struct {
	Rule
	name     string       // bare: a tool, a family or a mounted server
	list     *ignore.List // nil: bare
	reads    bool         // the pattern denies reading, and changing with it; else changing only
	dir      string       // what the pattern starts from
	relative bool         // it starts from the cwd and the roots, too
	must     string       // occurs in every path that the pattern matches: a cheap test before the dear one
}

const mountPrefix = "mcp__"

// The tools that a family name covers, beside the tool that has it as an alias.
var (
	readers = []string{"read_file", "list_files", "grep_search", "lsp"}
	editors = []string{"write_file", "edit_file", "multi_edit", "notebook_edit", "undo_change"}
	shells  = []string{"run_shell", "run_readonly", "monitor"}
)

// families are the names that cover more than one tool. Whoever may read nothing may change nothing either: a change
// shows what was there.
var families = map[string][]string{
	"Read":       slices.Concat(readers, editors),
	"Edit":       editors,
	"Bash":       shells,
	"PowerShell": shells,
}

// insteads are the names of single file tools, with the family that a pattern belongs to.
var insteads = map[string]string{
	"Write": "Edit", "MultiEdit": "Edit", "NotebookEdit": "Edit",
	"write_file": "Edit", "edit_file": "Edit", "multi_edit": "Edit", "notebook_edit": "Edit", "undo_change": "Edit",
	"Glob": "Read", "Grep": "Read", "LSP": "Read",
	"read_file": "Read", "list_files": "Read", "grep_search": "Read", "lsp": "Read",
}

var ruleForm = regexp.MustCompile(`(?s)^([A-Za-z][A-Za-z0-9_-]*)(\((.*)\))?$`)

// parse reads one rule. The error names the rule and where it stands.
func parse(r Rule, home string) (rule, error) {
	parsed := rule{Rule: r}
	if err := parsed.read(home); err != nil {
		origin := r.Origin
		if origin == "" {
			origin = "permission rules"
		}
		return rule{}, fmt.Errorf("%s: rule %q: %w", origin, r.Text, err)
	}
	return parsed, nil
}

func (r *rule) read(home string) error {
	parts := ruleForm.FindStringSubmatch(r.Text)
	if parts == nil {
		if strings.ContainsAny(r.Text, "*?") {
			return errors.New("this version does not understand patterns of tool names; name each tool")
		}
		return errors.New("want Tool, Read(pattern) or Edit(pattern)")
	}
	name, bare, spec := parts[1], parts[2] == "", parts[3]
	switch {
	case bare, spec == "*":
		r.name = name
		return nil
	case name == "Read", name == "Edit":
		r.reads = name == "Read"
		return r.readPattern(spec, home)
	case insteads[name] != "":
		return fmt.Errorf("patterns belong to families; write %s(%s)", insteads[name], spec)
	}
	return fmt.Errorf("this version does not understand %s(…); only Read and Edit take a pattern, any tool can be denied as a whole", name)
}

// readPattern finds what the pattern starts from, and makes of the rest what a gitignore file in that directory
// would say.
func (r *rule) readPattern(spec, home string) error {
	if spec != strings.TrimSpace(spec) || strings.HasPrefix(spec, "!") || strings.ContainsFunc(spec, invisible) {
		return errors.New(`a pattern has no "!", no invisible characters, and no blanks at its ends`)
	}
	var rest string
	floating := false // matches at any depth
	switch {
	case strings.HasPrefix(spec, "//"):
		r.dir, rest = "/", spec[2:]
	case strings.HasPrefix(spec, "~/"):
		if home == "" {
			return errors.New("the home directory is not known")
		}
		r.dir, rest = home, spec[2:]
	case strings.HasPrefix(spec, "~"):
		return errors.New(`"~" is only understood as "~/"; a name that begins so is written "\~"`)
	case strings.HasPrefix(spec, "/"):
		if r.Dir == "" {
			return errors.New("there is no directory that it could be relative to; write // for an absolute path")
		}
		r.dir, rest = clean(r.Dir), spec[1:]
	default:
		r.dir, r.relative = clean(r.Dir), true
		rest = strings.TrimPrefix(spec, "./")
		name := strings.TrimSuffix(strings.TrimSuffix(rest, "/"), "/**")
		floating = rest == spec && !strings.Contains(name, "/")
	}
	if err := checkPattern(rest); err != nil {
		return err
	}
	line := "/" + rest
	switch {
	case floating && strings.HasSuffix(rest, "/**"):
		line = "**/" + rest
	case floating && rest[0] == '#':
		line = `\` + rest // else it were a comment
	case floating:
		line = rest
	}
	r.list, r.must = ignore.Parse([]byte(line)), literal(rest)
	return nil
}

// invisible characters in a rule are a mistake or a trick: nobody sees what it would match.
func invisible(c rune) bool {
	return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == unicode.ReplacementChar
}

// checkPattern refuses what could never match a clean path.
func checkPattern(rest string) error {
	if rest == "" {
		return errors.New("the pattern names nothing; write ** for everything below")
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("the component %q never matches", part)
		}
		for i := 0; i < len(part); i++ {
			switch part[i] {
			case '\\':
				if i++; i == len(part) {
					return errors.New("a backslash at the end of a component never matches")
				}
			case '[':
				n := class(part[i:])
				if n == 0 {
					return errors.New(`a "[" without its "]" never matches; a name with one is written "\["`)
				}
				i += n - 1
			}
		}
	}
	return nil
}

// class returns the length of the character class at the start of p; 0 if it is not closed, or holds a named class,
// which this version leaves to git.
func class(p string) int {
	i := 1
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		i++
	}
	for first := true; i < len(p); first = false {
		switch {
		case p[i] == ']' && !first:
			return i + 1
		case p[i] == '\\':
			i++
		case strings.HasPrefix(p[i:], "[:"):
			return 0
		}
		i++
	}
	return 0
}

// literal returns the longest run of ordinary characters within one component.
func literal(rest string) string {
	best, start := "", 0
	end := func(i int) {
		if i-start > len(best) {
			best = rest[start:i]
		}
	}
	for i := 0; i < len(rest); i++ {
		next := i
		switch rest[i] {
		case '/', '*', '?':
		case '\\':
			next++
		case '[':
			next += class(rest[i:]) - 1
		default:
			continue
		}
		end(i)
		i = next
		start = i + 1
	}
	end(len(rest))
	return best
}

// names says whether a bare rule is about a tool.
func (r *rule) names(tool string, aliases []string) bool {
	if r.name == tool || slices.Contains(aliases, r.name) || slices.Contains(families[r.name], tool) {
		return true
	}
	rest, ok := strings.CutPrefix(tool, r.name+"__")
	return ok && rest != "" && strings.HasPrefix(r.name, mountPrefix)
}

// covers says whether path, or a directory on the way to it, matches the pattern as seen from dir. Everything is taken
// for a directory: a rule about a directory denies it whether it exists or not.
func (r *rule) covers(path, dir string) bool {
	rel, ok := below(dir, path)
	if !ok {
		return false
	}
	for i := range len(rel) {
		if rel[i] == '/' && r.list.Match(rel[:i], true) == ignore.Ignore {
			return true
		}
	}
	return r.list.Match(rel, true) == ignore.Ignore
}
