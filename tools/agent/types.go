package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"codehand/tools/permission"
	"codehand/tools/skills"
)

// A Type says what kind of sub-agent there is. It does not change.
type Type struct {
	Name, Description string
	File              string   // absolute; "": it is built in, and Prompt is its text
	Prompt            string   // of a built-in type
	Tools             []string // names, aliases or `*`; nil: all
	Without           []string // likewise, taken from Tools; nil: none
	ReadOnly          bool     // plan mode holds for it
	Mode              permission.Mode
	Narrows           bool // Mode counts
	Model             string
	MaxTurns          int      // 0: as everywhere
	Skills            []string // that its prompt tells it to load

	skill skills.Skill // of File
}

// General is the type of a sub-agent if nothing else is said.
const General = "general-purpose"

// builtin are the types that are always there. No file replaces one.
var builtin = []Type{
	{
		Name: "explore", ReadOnly: true,
		Description: "finds things in the code and reports where they are; changes nothing",
		Prompt: "You explore a code base and change nothing. Search broadly first, then read the places that matter. " +
			"Run independent searches in one turn. Look as thoroughly as the task says: quickly means the first good " +
			"answer, very thoroughly means every spelling, directory and file type that could hold one. Report facts " +
			"with paths and line numbers, quote only the lines that prove a point, and say what you looked for and " +
			"did not find.",
	},
	{
		Name: "plan", ReadOnly: true,
		Description: "studies the code and designs a plan for a change; changes nothing",
		Prompt: "You design a change and make none. Read what exists, find patterns and helpers that can be used " +
			"again, and weigh the ways to do it. End with a plan: the goal in a sentence, the steps in order with " +
			"the files and functions that each touches, how to test the result, risks, and the three to five files " +
			"that matter most.",
	},
	{
		Name:        General,
		Description: "does research and work of many steps, with all tools",
		Prompt: "You do a task of several steps from beginning to end. Do what was asked, and nothing else. Read a " +
			"file before you change it, prefer a change of a file to a new one, and check your work as the project " +
			"does.",
	},
}

// Types are the types that a session may use, and the files that are none.
type Types struct {
	All     []Type // built-in ones first, then by name
	Dropped []skills.Dropped
}

// ReadTypes returns the built-in types and those of files, which a skills.Index has found as flat skills. A file whose
// name is that of a built-in type, or of an earlier file, counts for nothing.
func ReadTypes(set skills.Set) Types {
	t := Types{All: slices.Clone(builtin), Dropped: slices.Clone(set.Dropped)}
	for _, k := range set.Skills {
		x, err := readType(k)
		if err == nil {
			if _, taken := t.Find(x.Name); taken {
				err = fmt.Errorf("there is a type %s already", x.Name)
			}
		}
		if err != nil {
			t.Dropped = append(t.Dropped, skills.Dropped{Path: k.File, Reason: err.Error()})
			continue
		}
		t.All = append(t.All, x)
	}
	return t
}

// Find returns the type of that name, in any case.
func (t Types) Find(name string) (Type, bool) {
	name = TypeKey(name)
	for _, x := range t.All {
		if TypeKey(x.Name) == name {
			return x, true
		}
	}
	return Type{}, false
}

// TypeKey is the one spelling of a type's name: rules must mean the type that Find returns.
func TypeKey(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// limit is the mode that holds for it at most; ok is false if that of its parent alone counts.
func (t Type) limit() (mode permission.Mode, ok bool) {
	switch {
	case t.ReadOnly:
		return permission.Plan, true
	case t.Narrows:
		return t.Mode, true
	}
	return permission.Default, false
}

// ModeBelow is the mode of its sub-agents where that of their parent is mode.
func (t Type) ModeBelow(mode permission.Mode) permission.Mode {
	if most, ok := t.limit(); ok {
		return mode.AtMost(most)
	}
	return mode
}

// Skill is the file of a type that is not built in, for Index.Body.
func (t Type) Skill() skills.Skill { return t.skill }

// typeName is what a type may be called.
var typeName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\pL\pN][\pL\pN _.:-]{0,63}$`) })

// readType reads the front matter of a file. It takes the keys that other agents use for the same: tools and
// allowed-tools, disallowedTools and disallowed_tools, maxTurns, max_turns and steps, permissionMode, readonly.
func readType(k skills.Skill) (Type, error) {
	var front map[string]any
	if err := json.Unmarshal(k.Front, &front); err != nil {
		return Type{}, fmt.Errorf("its front matter cannot be read: %w", err)
	}
	t := Type{Name: word(front["name"]), Description: oneLine(word(front["description"]), 300), File: k.File, skill: k}
	if t.Name == "" {
		t.Name = strings.TrimSuffix(k.Name, ".agent")
	}
	switch {
	case !typeName().MatchString(t.Name):
		return t, fmt.Errorf("an agent type cannot be named %q", oneLine(t.Name, 80))
	case t.Description == "":
		return t, fmt.Errorf("its front matter has no description")
	}
	t.tools(first(front, "tools", "allowed-tools", "allowedTools", "allowed_tools"))
	if v := first(front, "disallowedTools", "disallowed-tools", "disallowed_tools"); v != nil {
		t.Without = append(t.Without, names(v)...)
	}
	if m := word(front["model"]); !inherits[strings.ToLower(m)] {
		t.Model = m
	}
	if n, err := strconv.Atoi(word(first(front, "maxTurns", "max-turns", "max_turns", "steps"))); err == nil && n > 0 {
		t.MaxTurns = n
	}
	if m := word(first(front, "permissionMode", "permission-mode", "permission_mode")); m != "" {
		t.Narrows = true
		t.Mode, _ = permission.ParseMode(m) // an unknown mode becomes the mode that asks
	}
	t.ReadOnly = strings.EqualFold(word(first(front, "readonly", "readOnly", "read-only")), "true")
	t.Skills = names(front["skills"])
	return t, nil
}

// inherits are values of model that mean the usual one.
var inherits = map[string]bool{"inherit": true, "default": true, "auto": true, "fast": true}

// tools reads the tools that a type names: a list, a text, or an object with names and truths. Of an object, what is
// not true is taken away, and what is true counts only beside a general no.
func (t *Type) tools(v any) {
	object, ok := v.(map[string]any)
	switch {
	case v == nil:
		return
	case !ok:
		t.Tools = names(v)
		if t.Tools == nil {
			t.Tools = []string{} // an empty list is no list of all
		}
		return
	}
	none := false
	var yes []string
	for name, on := range object {
		switch {
		case on == true && name != "*":
			yes = append(yes, name)
		case on != true && name == "*":
			none = true
		case on != true:
			t.Without = append(t.Without, name)
		}
	}
	slices.Sort(t.Without)
	if none {
		slices.Sort(yes)
		t.Tools = append([]string{}, yes...)
	}
}

// first is the first of keys that there is.
func first(front map[string]any, keys ...string) any {
	for _, key := range keys {
		if v, ok := front[key]; ok {
			return v
		}
	}
	return nil
}

// word is a value as a text; "" for lists and objects.
func word(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case bool, float64, json.Number:
		return fmt.Sprint(v)
	}
	return ""
}

// names reads a list of names, or a text with commas or blanks between. What stands in parentheses stays with its name.
func names(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		depth, from := 0, 0
		for i, r := range v + "," {
			switch {
			case r == '(':
				depth++
			case r == ')':
				depth = max(0, depth-1)
			case depth == 0 && (r == ',' || r == ' ' || r == '\t' || r == '\n') || i == len(v):
				if s := strings.TrimSpace(v[from:min(i, len(v))]); s != "" {
					out = append(out, s)
				}
				from = i + 1
			}
		}
	case []any:
		for _, item := range v {
			out = append(out, names(item)...)
		}
	}
	return out[:min(len(out), 256)]
}

// oneLine is text on one line, with at most max characters.
func oneLine(text string, max int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > max {
		text = string(r[:max-1]) + "…"
	}
	return text
}
