package permission

import (
	"slices"
	"strings"

	"codehand/tools/bash"
)

// Idle says why the pattern of a rule matches nothing that its author can mean, wherever the roots are, and what to
// write instead; "": it may match. hasInput says whether a tool that the rule names takes an input of a name.
func (c Coverage) Idle(hasInput func(name string) bool) (why, fix string) {
	tool, spec, _, _ := splitRule(c.Rule.Text)
	switch c.Kind {
	case Path:
		why, fix = idlePath(tool, spec)
	case Command:
		why, fix = idleCommand(tool, spec, c.rule.text.exact(), c.rule.allows)
	}
	if name, value, ok := parameter(spec); ok && why == "" && !hasInput(name) {
		switch {
		case c.Kind == Command && value != "*":
			return "no tool here has an input " + name + ", and no command begins with the one word " + spec,
				"write " + tool + "(" + name + " " + value + ")"
		case c.Kind == Path:
			return "no tool here has an input " + name + ", and no file is called " + spec,
				"write " + tool + "(" + name + "/**) for a directory"
		case c.Kind == NoKind:
			return "no tool here has an input " + name, "name an input of the tool"
		}
	}
	return why, fix
}

func idlePath(tool, spec string) (why, fix string) {
	before, rest, _ := strings.Cut(spec, "{")
	switch {
	case strings.HasPrefix(spec, "$"):
		return "variables are not replaced in a pattern", "write " + tool + "(~/x) for the home directory"
	case strings.Contains(rest, ",") && strings.Contains(rest, "}") && !strings.HasSuffix(before, `\`):
		return "braces in a pattern are part of a name, and no alternatives", "write one rule for each of them"
	}
	return "", ""
}

func idleCommand(tool, spec string, exact, allows bool) (why, fix string) {
	first, rest, _ := strings.Cut(spec, " ")
	name, behind, colon := strings.Cut(first, ":*")
	switch {
	case colon && name != "" && (behind != "" || rest != ""):
		return "the :* counts only at the end of a pattern", "write " + tool + "(" + name + " *) or name the words"
	case strings.Contains(spec, "  ") && !strings.ContainsAny(spec, `"'\`):
		return "the words of a command are compared with one blank between them",
			"write " + tool + "(" + strings.Join(strings.Fields(spec), " ") + ")"
	case expression(first):
		return first + " is the name of no command, and a pattern is no regular expression",
			"write one rule for each command; only * has a meaning"
	case allows && !exact && len(bash.Analyze(strings.ReplaceAll(spec, "*", "x"), nil).Parts) > 1:
		return "each command of a line is compared by itself", "write one rule for each command"
	}
	return "", ""
}

// expression says whether a first word means alternatives or anchors: `rm|mv`, `(rm|mv)`, `{rm,mv}`, `^rm`.
func expression(first string) bool {
	if strings.Trim(first, "^$") != first && strings.Trim(first, "^$") != "" && !strings.HasPrefix(first, "$") {
		return true
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(first, "("), ")")
	if braced, ok := strings.CutPrefix(first, "{"); ok {
		inner = strings.ReplaceAll(strings.TrimSuffix(braced, "}"), ",", "|")
	}
	names := strings.Split(inner, "|")
	return len(names) > 1 && !slices.ContainsFunc(names, func(name string) bool { return !plainWord(name) })
}
