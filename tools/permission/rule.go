package permission

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"codehand/tools/catalog"
	"codehand/tools/guarded"
)

// A Rule is one entry of a rule list, as its source wrote it.
type Rule struct {
	Text   string // `run_shell`, `Read(secrets/**)`, `Bash(git push *)`
	Origin string // file and line, flag or environment variable
	// directory of the project whose file has the rule, links resolved: where its `/x` starts; "": each root of the
	// workspace
	Dir string
}

// A rule is a Rule that was understood. It has one condition at most, but a rule that denies or asks may be read in two
// ways (`Bash(make:all)` is a command, and a parameter); then either counts.
type rule struct {
	Rule
	name     string   // of a tool, a family or a mounted server
	families []Family // what the name covers besides the tool that has it as name or alias
	tools    []string // likewise, of single tools
	allows   bool     // else it denies or asks
	glob     *glob    // the name has a `*`
	lent     bool     // by a skill
	discards bool     // a person allowed it in this session for commands that may discard content
	reads    bool     // it is about reading files
	writes   bool     // it is about changing files

	path  *pathPattern
	text  *glob // a command, or the name of an agent or a skill
	host  *hostPattern
	param string // name of a parameter; "": none
	value *glob  // of the parameter
}

const mountPrefix = "mcp__"

// An argKind says what may stand in the parentheses behind a name, besides a parameter.
type argKind int

const (
	nothing argKind = iota
	aPath
	aCommand
	aDomain
	aName
)

// takes are the names whose rules take something, also of tools that come later. Others take a parameter only.
var takes = map[string]struct {
	what   argKind
	family Family // FamilyUnknown: none
	tool   string // the one that the name stands for; "": that of this name or alias
	folds  bool   // of aName: names are the same in any case, and targets have them in lower case
}{
	"Read": {what: aPath, family: FamilyRead}, "Edit": {what: aPath, family: FamilyEdit},
	"Bash":      {what: aCommand, family: FamilyBash},
	"run_shell": {what: aCommand}, "run_readonly": {what: aCommand},
	"monitor": {what: aCommand}, "Monitor": {what: aCommand, tool: "monitor"},
	"WebFetch": {what: aDomain, tool: "web_fetch"}, "web_fetch": {what: aDomain},
	"Agent": {what: aName, tool: "agent", folds: true}, "agent": {what: aName, folds: true},
	"Skill": {what: aName, tool: "skill"}, "skill": {what: aName},
}

// insteads are the names of single file tools, with the family that a pattern belongs to: for the words of an error.
var insteads = map[string]string{
	"Write": "Edit", "MultiEdit": "Edit", "NotebookEdit": "Edit",
	"write_file": "Edit", "edit_file": "Edit", "multi_edit": "Edit", "notebook_edit": "Edit", "undo_change": "Edit",
	"Glob": "Read", "Grep": "Read", "LSP": "Read",
	"read_file": "Read", "list_files": "Read", "grep_search": "Read", "file_history": "Read", "lsp": "Read",
}

// parse reads one rule for the list of rules that decide so. The error names the rule and where it stands.
func parse(r Rule, home string, v Verdict) (rule, error) {
	parsed := rule{Rule: r}
	if err := parsed.read(home, v); err != nil {
		origin := r.Origin
		if origin == "" {
			origin = "permission rules"
		}
		return rule{}, fmt.Errorf("%s: rule %q: %w", origin, r.Text, err)
	}
	return parsed, nil
}

func (r *rule) read(home string, v Verdict) error {
	name, spec, bare, ok := splitRule(r.Text)
	switch {
	case !ok:
		return errors.New("want Tool or Tool(what)")
	case !goodName(name):
		return errors.New("want the name of a tool, of letters, digits, _ and -")
	case name == mountPrefix:
		return errors.New("it can never match: it names no server; write mcp__* for all of them")
	case strings.Contains(name, "*") && v == Allow:
		return errors.New("only rules that deny or ask take a pattern of tool names; name each tool, or mcp__SERVER")
	}
	r.setName(catalog.Short(name), v)
	switch {
	case bare || spec == "*":
		return nil
	case spec == "":
		return fmt.Errorf("the parentheses name nothing; write %s for all of it", name)
	}
	return r.readSpec(spec, home, v)
}

// splitRule parts `Tool(spec)`.
func splitRule(text string) (name, spec string, bare, ok bool) {
	name, spec, found := strings.Cut(text, "(")
	if !found {
		return text, "", true, text != ""
	}
	spec, closed := strings.CutSuffix(spec, ")")
	return name, spec, false, closed && name != ""
}

// goodName says whether a name can be that of a tool, or a pattern of such.
func goodName(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '*':
		case ('0' <= c && c <= '9' || c == '_' || c == '-') && i > 0:
		default:
			return false
		}
	}
	return name != ""
}

// setName finds what a name covers. Where reading is denied, changing is denied too, since a change shows what was
// there. Where changing is allowed, so is reading.
func (r *rule) setName(name string, v Verdict) {
	r.name, r.allows = name, v == Allow
	if of := takes[name]; of.family != FamilyUnknown {
		r.families = []Family{of.family}
	} else if of.tool != "" {
		r.tools = []string{of.tool}
	}
	if strings.Contains(name, "*") {
		r.glob = newGlob(name)
	}
	switch {
	case name == "Read":
		r.reads, r.writes = true, v == Deny
	case name == "Edit":
		r.reads, r.writes = v == Allow, true
	}
	if r.reads && r.writes {
		r.families = []Family{FamilyRead, FamilyEdit}
	}
}

// readSpec reads what stands in the parentheses.
func (r *rule) readSpec(spec, home string, v Verdict) error {
	what := takes[r.name].what
	param, value, isParam := parameter(spec)
	if what == aCommand && value == "*" || what == aDomain && param == "domain" {
		isParam = false // `npm:*` is a command
	}
	if isParam {
		if err := checkParameter(r.name, param, what); err != nil {
			return err
		}
		if v != Allow {
			r.param, r.value = param, newGlob(value)
		}
	}
	switch {
	case what == aPath:
		return r.readPattern(spec, home, v)
	case what == aCommand:
		return r.readCommand(spec, v)
	case what == aDomain && !isParam:
		return r.readDomain(spec)
	case what == aName: // which may have a colon, as in `plugin:name`
		return r.readText(spec)
	case r.param != "":
		return nil
	case isParam:
		return errors.New("only rules that deny or ask look at a parameter")
	case insteads[r.name] != "":
		return fmt.Errorf("patterns belong to families; write %s(%s)", insteads[r.name], spec)
	}
	return fmt.Errorf("it can never match: %s takes nothing in parentheses but a parameter, as in %s(name:value)",
		r.name, r.name)
}

// parameter parts `name:value`.
func parameter(spec string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(spec, ":")
	if !ok || name == "" || value == "" || len(name) == 1 && strings.ContainsAny(value[:1], `/\`) { // C:\
		return "", "", false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == '-' && i == 0, '0' <= c && c <= '9' && i > 0:
		default:
			return "", "", false
		}
	}
	return name, value, true
}

// checkParameter refuses the parameters that other forms of rules are about: they compare a path or a command as what
// it is, and not as a text with many spellings.
func checkParameter(tool, name string, what argKind) error {
	switch name {
	case "command", "file_path", "path", "notebook_path", "url", "subagent_type":
	default:
		return nil
	}
	family := map[argKind]string{aPath: tool + "(pattern)", aCommand: tool + "(command)",
		aDomain: tool + "(domain:HOST)", aName: tool + "(name)"}[what]
	if family == "" {
		family = "Read(pattern), Edit(pattern), Bash(command) or WebFetch(domain:HOST)"
	}
	return fmt.Errorf("the parameter %s is not compared as a text; write %s", name, family)
}

// readText reads the name of an agent or a skill.
func (r *rule) readText(spec string) error {
	if spec != strings.TrimSpace(spec) || strings.ContainsFunc(spec, guarded.Invisible) {
		return errors.New("a name has no invisible characters, and no blanks at its ends")
	}
	if takes[r.name].folds {
		spec = strings.ToLower(spec)
	}
	r.text = newGlob(spec)
	return nil
}

// bare says that the rule is about every use of its tools.
func (r *rule) bare() bool {
	return r.path == nil && r.text == nil && r.host == nil && r.param == ""
}

// names says whether the rule is about a tool.
func (r *rule) names(tool string, aliases []string, f Family) bool {
	if r.glob != nil {
		return r.glob.match(tool) || slices.ContainsFunc(aliases, r.glob.match)
	}
	if r.name == tool || slices.Contains(r.tools, tool) || slices.Contains(aliases, r.name) || r.family(f) {
		return true
	}
	return strings.HasPrefix(r.name, mountPrefix) && len(tool) > len(r.name)+2 &&
		strings.HasPrefix(tool, r.name) && strings.HasPrefix(tool[len(r.name):], "__")
}
