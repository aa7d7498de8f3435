package mounts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"codehand/tools/results"
)

const (
	maxSchema = 64 << 10 // bytes of a schema that is listed; a longer one is listed as any object
	maxDepth  = 64       // of a schema
	// maxSteps is how many schemas may count for one value, so that to check it takes no time.
	maxSteps = 10_000
)

// anyObject is the schema of a tool about whose input nothing can be said.
var anyObject = json.RawMessage(`{"type":"object"}`)

// rootless are what clients do not take at the root of a schema. The server checks them itself, and so does a checker.
var rootless = []string{
	"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref", "$dynamicRef", "$recursiveRef", "enum", "const",
}

// fit makes a schema fit for clients: its root is an object, and no text in it acts on a terminal. Names and values
// stay.
func fit(schema json.RawMessage) json.RawMessage {
	var root map[string]any
	if len(schema) > maxSchema || decode(schema, &root) != nil || root == nil {
		return anyObject
	}
	for _, key := range rootless {
		delete(root, key)
	}
	if p, ok := root["properties"].(map[string]any); !ok && root["properties"] != nil || ok && p == nil {
		delete(root, "properties")
	}
	if _, err := required(root); err != nil {
		delete(root, "required")
	}
	root["type"] = "object"
	harmless, ok := quiet(root, maxDepth)
	if !ok {
		return anyObject
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(true) // what frames a list of tools stays a text in it
	if enc.Encode(harmless) != nil || b.Len() > 2*maxSchema {
		return anyObject
	}
	return bytes.TrimSpace(b.Bytes())
}

func required(root map[string]any) (names []string, err error) {
	if root["required"] == nil {
		return nil, nil
	}
	list, ok := root["required"].([]any)
	if !ok {
		return nil, errors.New("no list")
	}
	for _, v := range list {
		name, ok := v.(string)
		if !ok {
			return nil, errors.New("no name")
		}
		names = append(names, name)
	}
	return names, nil
}

// quiet is a part of a schema without controls in its texts, and without what clients read as headers; false: it is too
// deep.
func quiet(v any, depth int) (any, bool) {
	if depth == 0 {
		return nil, false
	}
	switch v := v.(type) {
	case string:
		return results.Clean(v), true
	case []any:
		for i, x := range v {
			clean, ok := quiet(x, depth-1)
			if !ok {
				return nil, false
			}
			v[i] = clean
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for key, x := range v {
			if strings.EqualFold(key, "x-mcp-header") {
				continue
			}
			one, ok := quiet(x, depth-1)
			if !ok {
				return nil, false
			}
			clean[results.Clean(key)] = one
		}
		return clean, true
	}
	return v, true
}

// decode reads JSON and keeps numbers as they are written.
func decode(raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// checker is what finds out whether arguments fit the schema of a server, as it was. The schema is read when the first
// call comes. A schema that cannot be used lets everything pass: its server checks, too.
func checker(schema json.RawMessage) func(input json.RawMessage) []string {
	resolved := sync.OnceValue(func() *jsonschema.Resolved {
		if len(schema) > maxSchema || !safe(schema) {
			return nil
		}
		s := new(jsonschema.Schema)
		if json.Unmarshal(schema, s) != nil {
			return nil
		}
		r, err := s.Resolve(nil)
		if err != nil {
			return nil
		}
		return r
	})
	return func(input json.RawMessage) []string {
		r := resolved()
		if r == nil {
			return nil
		}
		var value any
		if err := json.Unmarshal(input, &value); err != nil {
			return []string{"the arguments are not valid JSON"}
		}
		if err := r.Validate(value); err != nil {
			return []string{results.Line(strings.TrimPrefix(err.Error(), "validating root: "), 300)}
		}
		return nil
	}
}

// inPlace are the keys whose schemas are about the same value as the one that has them.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}

// safe says whether checking with a schema ends, and soon: it refers to nothing but its own parts by their place, and
// the schemas that count for one value neither lead back to each other nor multiply.
func safe(schema json.RawMessage) bool {
	var root any
	if decode(schema, &root) != nil {
		return false
	}
	s := safety{root: root, cost: map[string]int{}}
	return s.walk(root, "", maxDepth) == nil
}

// safety is one look at a schema.
type safety struct {
	root any
	cost map[string]int // of schemas by their place; -1: being looked at
}

var errUnsafe = errors.New("checking may not end")

// walk looks at all parts of a schema.
func (s *safety) walk(v any, at string, depth int) error {
	if depth == 0 {
		return errUnsafe
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$recursiveAnchor"} {
			if _, ok := v[key]; ok {
				return errUnsafe
			}
		}
		if _, ok := v["$id"].(string); ok && at != "" {
			return errUnsafe
		}
		if _, err := s.steps(v, at); err != nil {
			return err
		}
		for key, x := range v {
			if err := s.walk(x, at+"/"+escaped(key), depth-1); err != nil {
				return err
			}
		}
	case []any:
		for i, x := range v {
			if err := s.walk(x, fmt.Sprintf("%s/%d", at, i), depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// steps is how many schemas count for one value that the schema at a place is held against.
func (s *safety) steps(v any, at string) (int, error) {
	schema, ok := v.(map[string]any)
	if !ok {
		return 1, nil
	}
	switch n, seen := s.cost[at]; {
	case seen && n < 0:
		return 0, errUnsafe
	case seen:
		return n, nil
	}
	s.cost[at] = -1
	total := 1
	add := func(x any, at string) error {
		n, err := s.steps(x, at)
		if total += n; total > maxSteps {
			return errUnsafe
		}
		return err
	}
	for _, key := range inPlace {
		switch x := schema[key].(type) {
		case []any:
			for i, one := range x {
				if err := add(one, fmt.Sprintf("%s/%s/%d", at, key, i)); err != nil {
					return 0, err
				}
			}
		case map[string]any:
			parts := map[string]any{"": x}
			if key == "dependentSchemas" {
				parts = x
			}
			for name, one := range parts {
				place := at + "/" + key
				if key == "dependentSchemas" {
					place += "/" + escaped(name)
				}
				if err := add(one, place); err != nil {
					return 0, err
				}
			}
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		place, found := strings.CutPrefix(ref, "#")
		target, known := s.at(place)
		if !found || !known {
			return 0, errUnsafe
		}
		if err := add(target, place); err != nil {
			return 0, err
		}
	}
	s.cost[at] = total
	return total, nil
}

// at finds the part of the root at a place.
func (s *safety) at(place string) (any, bool) {
	v := s.root
	if place == "" {
		return v, true
	}
	if !strings.HasPrefix(place, "/") {
		return nil, false
	}
	for name := range strings.SplitSeq(place[1:], "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[name]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func escaped(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }
