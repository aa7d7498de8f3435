package settings

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// A shape is what a value must be. The zero shape is anything; null is of every shape, since programs take it for
// nothing.
type shape struct {
	kind   string // as in the words of a refusal: "an object", "a list", ...; "": anything
	fields []field
	each   *shape // of every item of a list, or of every field of an object that is not in fields; nil: anything
}

// A field is a field of an object that is known. Others are allowed.
type field struct {
	name  string
	shape shape
}

const (
	anObject = "an object"
	aList    = "a list"
	aText    = "a text"
	aNumber  = "a number"
	aTruth   = "true or false"
)

func object(fields ...field) shape { return shape{kind: anObject, fields: fields} }
func text() shape                  { return shape{kind: aText} }
func truth() shape                 { return shape{kind: aTruth} }
func listOf(item shape) shape      { return shape{kind: aList, each: &item} }
func mapOf(value shape) shape      { return shape{kind: anObject, each: &value} }

// check says what is wrong with a value; at is its path: .permissions.allow[2].
func (s shape) check(at string, value any) error {
	if is := kindOf(value); s.kind != "" && is != "" && is != s.kind {
		if at == "" {
			at = "the whole"
		}
		return fmt.Errorf("%s must be %s, not %s", at, s.kind, is)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if err := s.of(name).check(at+"."+name, value[name]); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range value {
			if s.each == nil {
				break
			}
			if err := s.each.check(at+"["+strconv.Itoa(i)+"]", item); err != nil {
				return err
			}
		}
	}
	return nil
}

// of is the shape of a field.
func (s shape) of(name string) shape {
	if i := slices.IndexFunc(s.fields, func(f field) bool { return f.name == name }); i >= 0 {
		return s.fields[i].shape
	}
	if s.each != nil {
		return *s.each
	}
	return shape{}
}

// kindOf is "" for null.
func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return anObject
	case []any:
		return aList
	case string:
		return aText
	case float64:
		return aNumber
	case bool:
		return aTruth
	}
	return ""
}

// claudeSettings are .claude/settings.json and its kin.
func claudeSettings() shape {
	texts := listOf(text())
	hook := object(field{"type", text()}, field{"command", text()}, field{"timeout", shape{kind: aNumber}})
	return object(
		field{"permissions", object(
			field{"allow", texts}, field{"ask", texts}, field{"deny", texts},
			field{"additionalDirectories", texts}, field{"defaultMode", text()},
		)},
		field{"hooks", mapOf(listOf(object(field{"matcher", text()}, field{"hooks", listOf(hook)})))},
		field{"env", object()},
		field{"model", text()},
		field{"apiKeyHelper", text()},
		field{"cleanupPeriodDays", shape{kind: aNumber}},
		field{"includeCoAuthoredBy", truth()},
		field{"disableAllHooks", truth()},
		field{"enableAllProjectMcpServers", truth()},
		field{"enabledMcpjsonServers", texts},
		field{"disabledMcpjsonServers", texts},
		field{"statusLine", object()},
	)
}

// servers are MCP servers by name.
func servers() shape {
	return mapOf(object(
		field{"type", text()}, field{"command", text()}, field{"args", listOf(text())}, field{"env", object()},
		field{"url", text()}, field{"headers", mapOf(text())},
	))
}

// vscodeFile is a file of .vscode, by its name in lower case.
func vscodeFile(name string) shape {
	texts, objects := listOf(text()), listOf(object())
	switch name {
	case "settings.json":
		return object()
	case "tasks.json":
		return object(field{"version", text()}, field{"tasks", objects}, field{"inputs", objects})
	case "launch.json":
		return object(field{"version", text()}, field{"configurations", objects}, field{"compounds", objects},
			field{"inputs", objects})
	case "extensions.json":
		return object(field{"recommendations", texts}, field{"unwantedRecommendations", texts})
	case "mcp.json":
		return object(field{"servers", servers()}, field{"inputs", objects})
	}
	return shape{}
}
