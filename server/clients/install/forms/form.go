package forms

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// A Form is how a file is written. Its methods keep the order of bytes, a byte order mark apart, which is the caller's.
type Form interface {
	// Decode returns tables (map[string]any), lists ([]any) and scalars; an empty table for a text of nothing but
	// blanks and comments. The error is a *SyntaxError.
	Decode(data []byte) (any, error)
	// merge puts our entry of snippet into data, in place of an entry of our name. All else stays. errForm: data is
	// written in a way in which nothing can be added. What it returns is checked by the caller.
	Merge(data, snippet []byte) ([]byte, error)
	// Remove takes out our entry, and with it the containers that drop names if they are empty then. The caller
	// compares what it returns, decoded, with Without. Where there is no entry of ours, it returns data.
	Remove(data []byte, container string, drop []string) ([]byte, error)
	// Mask puts stars in place of the texts that are not ours, where the form can tell: those of other servers and
	// settings may be secrets. The texts of keep, keys, numbers, comments and lines stay.
	Mask(data []byte, keep []string) []byte
}

// For is the form of a file, by its name.
func For(shown string) Form {
	switch filepath.Ext(shown) {
	case ".toml":
		return tomlForm{}
	case ".yaml":
		return yamlForm{}
	}
	return JSON
}

// Name is the key of our entry in every file, and the name of our program.
const Name = "codehand"

// ByteOrderMark is what some editors put before a text.
var ByteOrderMark = []byte("\xef\xbb\xbf")

// A SyntaxError is where a file cannot be read.
type SyntaxError struct {
	File         string
	Line, Column int // counted from 1; a column is a byte; 0: not known
	Text         string
}

// Error names file, line and column.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
}

// ErrNotUnderstood says that a file is written in a way in which nothing can be added to it or taken out.
var ErrNotUnderstood = errors.New("this file's form is not understood")

// Container is the key below which a snippet has our entry.
func Container(snippet any) string {
	top, _ := snippet.(map[string]any)
	for key, v := range top {
		switch servers := v.(type) {
		case map[string]any:
			if servers[Name] != nil {
				return key
			}
		case []any:
			if indexOf(servers, "name", Name) >= 0 {
				return key
			}
		}
	}
	return ""
}

// indexOf is the place of the table in a list whose key has a value; -1: there is none.
func indexOf(list []any, key, value string) int {
	for i, item := range list {
		if table, ok := item.(map[string]any); ok && table[key] == value {
			return i
		}
	}
	return -1
}

// Same compares two decoded values.
func Same(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}

// tuned are keys of an entry that keep the value that a person gave them, where we write them, too.
var tuned = []string{"autoApprove", "timeout", "tools", "tool_timeout_sec", "startup_timeout_sec"}

// written are the keys that make an entry local or remote. All others that a person added stay.
var written = []string{"source", "type", "url", "serverUrl", "httpUrl", "uri", "command", "cmd", "args", "headers",
	"http_headers", "env_http_headers", "env", "envs", "environment", "env_keys", "bearer_token_env_var", "name",
	"enabled", "disabled"}

// Merged is what tree must be once our entry of snippet is in it, said in decoded values.
func Merged(tree, snippet any) any {
	top, ok := tree.(map[string]any)
	want, _ := snippet.(map[string]any)
	if !ok {
		return nil
	}
	if len(top) == 0 {
		return want
	}
	out := maps.Clone(top)
	container := Container(snippet)
	for key, v := range want {
		switch v := v.(type) {
		case map[string]any:
			servers, _ := out[key].(map[string]any)
			servers = cloned(servers)
			servers[Name] = kept(v[Name], servers[Name])
			out[key] = servers
		case []any:
			by := "id"
			if key == container {
				by = "name"
			}
			list, _ := out[key].([]any)
			list = slices.Clone(list)
			for _, item := range v {
				table, _ := item.(map[string]any)
				id, _ := table[by].(string)
				if at := indexOf(list, by, id); at < 0 {
					list = append(list, item)
				} else if key == container {
					list[at] = kept(item, list[at])
				}
			}
			out[key] = list
		}
	}
	return out
}

// kept is an entry with what a person has set in the old one.
func kept(entry, old any) any {
	out, ok := entry.(map[string]any)
	was, _ := old.(map[string]any)
	if !ok {
		return entry
	}
	out = maps.Clone(out)
	for key, v := range was {
		_, has := out[key]
		if has && slices.Contains(tuned, key) || !has && !slices.Contains(written, key) {
			out[key] = v
		}
	}
	return out
}

func cloned(table map[string]any) map[string]any {
	if table == nil {
		return map[string]any{}
	}
	return maps.Clone(table)
}

// Without is what tree must be once our entry is out of it, and then those containers of drop that are empty.
func Without(tree any, container string, drop []string) any {
	top, ok := tree.(map[string]any)
	if !ok {
		return nil
	}
	out := maps.Clone(top)
	switch servers := out[container].(type) {
	case map[string]any:
		servers = maps.Clone(servers)
		delete(servers, Name)
		out[container] = servers
	case []any:
		if at := indexOf(servers, "name", Name); at >= 0 {
			out[container] = slices.Delete(slices.Clone(servers), at, at+1)
		}
	}
	if inputs, ok := out["inputs"].([]any); ok && container == "servers" {
		if at := indexOf(inputs, "id", Name); at >= 0 {
			out["inputs"] = slices.Delete(slices.Clone(inputs), at, at+1)
		}
	}
	for _, key := range drop {
		switch v := out[key].(type) {
		case nil:
			delete(out, key)
		case map[string]any:
			if len(v) == 0 {
				delete(out, key)
			}
		case []any:
			if len(v) == 0 {
				delete(out, key)
			}
		}
	}
	return out
}
