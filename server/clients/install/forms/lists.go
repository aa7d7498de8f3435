package forms

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// AddText adds a text to the list at a path, and what is missing of the path.
func AddText(data []byte, path []string, value string) ([]byte, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	s := styleOf(data)
	in := &root
	for i, key := range path {
		next, err := member(*in, key)
		if err != nil {
			return nil, err
		}
		if next == nil {
			text := quotedJSON(key) + ":" + nested(path[i+1:], value)
			m, err := parseJSON([]byte("{" + text + "}"))
			if err != nil {
				return nil, err
			}
			return s.add(data, in, s.indentOf(data, in), members(m)[0])
		}
		in = next
	}
	list, ok := in.Value.(*hujson.Array)
	if !ok {
		return nil, ErrNotUnderstood
	}
	for _, e := range list.Elements {
		if l, ok := e.Value.(hujson.Literal); ok && l.Kind() == '"' && l.String() == value {
			return data, nil
		}
	}
	item, err := parseJSON([]byte(quotedJSON(value)))
	if err != nil {
		return nil, err
	}
	return s.addItem(data, in, item)
}

// nested is a list of one text below the rest of a path.
func nested(path []string, value string) string {
	if len(path) == 0 {
		return "[" + quotedJSON(value) + "]"
	}
	return "{" + quotedJSON(path[0]) + ":" + nested(path[1:], value) + "}"
}

func quotedJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a text always has a form in JSON
	}
	return string(b)
}

// RemoveTexts takes the texts of values out of the list at a path; nothing, if there is no such list.
func RemoveTexts(data []byte, path, values []string) ([]byte, error) {
	return removeItems(data, path, func(v hujson.Value) bool {
		l, ok := v.Value.(hujson.Literal)
		return ok && slices.Contains(values, l.String())
	})
}

// removeItems takes items out of the list at a path; nothing, if there is no such list.
func removeItems(data []byte, path []string, goes func(hujson.Value) bool) ([]byte, error) {
	for {
		root, err := parseJSON(data)
		if err != nil {
			return nil, err
		}
		list, err := listAt(&root, path)
		if err != nil || list == nil {
			return data, err
		}
		at := slices.IndexFunc(list.Elements, goes)
		if at < 0 {
			return data, nil
		}
		e := list.Elements[at]
		before := -1
		if at > 0 {
			before = list.Elements[at-1].EndOffset + len(list.Elements[at-1].AfterExtra)
		}
		data = cutOut(data, e.StartOffset, e, at == len(list.Elements)-1, before)
	}
}

// listAt is the list at a path of keys; nil: there is none.
func listAt(v *hujson.Value, path []string) (*hujson.Array, error) {
	for _, key := range path {
		var err error
		if v, err = member(*v, key); err != nil || v == nil {
			return nil, err
		}
	}
	list, _ := v.Value.(*hujson.Array)
	return list, nil
}

// DropEmpty takes out the table or the list at a path if it is empty.
func DropEmpty(data []byte, path []string) ([]byte, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	in, last := &root, path[len(path)-1]
	for _, key := range path[:len(path)-1] {
		if in, err = member(*in, key); err != nil || in == nil {
			return data, err
		}
	}
	v, err := member(*in, last)
	if err != nil || v == nil {
		return data, err
	}
	switch empty := v.Value.(type) {
	case *hujson.Object:
		if len(empty.Members) == 0 {
			return removeMember(data, in, last)
		}
	case *hujson.Array:
		if len(empty.Elements) == 0 {
			return removeMember(data, in, last)
		}
	}
	return data, nil
}

// WithoutTexts is a tree without some texts of lists, and without the lists and tables that are empty then.
func WithoutTexts(tree any, texts map[string][]string) any {
	for path, values := range texts {
		tree = lessAt(tree, strings.Split(path, "."), values)
	}
	return tree
}

func lessAt(tree any, path []string, values []string) any {
	switch v := tree.(type) {
	case []any:
		if len(path) > 0 {
			return tree
		}
		return slices.DeleteFunc(slices.Clone(v), func(item any) bool {
			s, ok := item.(string)
			return ok && slices.Contains(values, s)
		})
	case map[string]any:
		if len(path) == 0 {
			return tree
		}
		out := maps.Clone(v)
		switch below := lessAt(v[path[0]], path[1:], values).(type) {
		case nil:
		case []any:
			if out[path[0]] = below; len(below) == 0 {
				delete(out, path[0])
			}
		case map[string]any:
			if out[path[0]] = below; len(below) == 0 {
				delete(out, path[0])
			}
		}
		return out
	}
	return tree
}
