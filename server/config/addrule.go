package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// adding keeps additions of one process apart.
var adding sync.Mutex

// AddAllow adds a rule to permissions.allow of an operator's file, which is made if there is none. All else that stands
// there stays byte for byte. The file is replaced in one step, also where links lead to it. On an error it stays as it
// was. Callers keep other processes out.
func AddAllow(path, rule string) error {
	adding.Lock()
	defer adding.Unlock()
	data, err := readUserFile(path)
	if err != nil {
		return fmt.Errorf("add a rule to %s: %w", path, err)
	}
	after, err := withAllow(data, rule)
	if err != nil {
		return fmt.Errorf("add a rule to %s: %w", path, err)
	}
	if bytes.Equal(after, data) {
		return nil
	}
	if err := replaceFile(path, data, after); err != nil {
		return fmt.Errorf("add a rule to %s: %w", path, err)
	}
	return nil
}

// errByHand says that a file is written in a way in which nothing can be added to it.
var errByHand = errors.New("permissions.allow cannot be extended there; add the rule by hand")

// withAllow returns the text of a file of settings with one rule more. It changes nothing else, by its own account and
// by the decoder's; a rule that is there already is not added.
func withAllow(data []byte, rule string) ([]byte, error) {
	var before, after map[string]any
	if err := toml.Unmarshal(data, &before); err != nil {
		return nil, err
	}
	rules, ok := lookup(before, allowPath).([]any)
	if !ok && lookup(before, allowPath) != nil {
		return nil, errByHand
	}
	for _, r := range rules {
		if r == rule {
			return data, nil
		}
	}
	text := splice(data, quoteTOML(rule))
	if err := toml.Unmarshal(text, &after); err != nil {
		return nil, errByHand
	}
	if before == nil {
		before = map[string]any{}
	}
	section, ok := before["permissions"].(map[string]any)
	if !ok {
		section = map[string]any{}
		before["permissions"] = section
	}
	section["allow"] = append(append([]any(nil), rules...), rule)
	want, err := toml.Marshal(before)
	if err != nil {
		return nil, errByHand
	}
	if got, err := toml.Marshal(after); err != nil || !bytes.Equal(got, want) {
		return nil, errByHand
	}
	return text, nil
}

var allowPath = []string{"permissions", "allow"}

// splice puts a value at the end of permissions.allow, or adds that key, or that table.
func splice(data []byte, value string) []byte {
	var p unstable.Parser
	var table []string
	p.Reset(data)
	header := -1   // end of the line of [permissions]
	spelt := false // there is a key permissions.x instead
	for p.NextExpression() {
		n := p.Expression()
		var path []string
		end := 0
		for it := n.Key(); it.Next(); {
			path = append(path, string(it.Node().Data))
			end = int(it.Node().Raw.Offset + it.Node().Raw.Length)
		}
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = path
			if n.Kind == unstable.Table && dotted(path) == "permissions" {
				header = lineEnd(data, end)
			}
		case unstable.KeyValue:
			spelt = spelt || len(table) == 0 && len(path) > 1 && path[0] == "permissions"
			if dotted(append(append([]string(nil), table...), path...)) == dotted(allowPath) {
				return insertItem(data, n.Value(), end, value)
			}
		}
	}
	if spelt {
		return insertAt(data, 0, "permissions.allow = ["+value+"]\n")
	}
	line := "allow = [" + value + "]\n"
	if header >= 0 {
		if data[header-1] != '\n' {
			line = "\n" + line
		}
		return insertAt(data, header, line)
	}
	text := string(data)
	if text != "" {
		text = strings.TrimRight(text, "\n") + "\n\n"
	}
	return []byte(text + "[permissions]\n" + line)
}

// insertItem puts a value behind the last one of an array, on a line of its own where that one has one. key is where
// the array's key ends.
func insertItem(data []byte, array *unstable.Node, key int, value string) []byte {
	var last *unstable.Node
	for it := array.Children(); it.Next(); {
		if n := it.Node(); n.Kind != unstable.Comment {
			last = n
		}
	}
	if last == nil {
		open := bytes.IndexByte(data[key:], '[')
		if open < 0 {
			return data
		}
		return insertAt(data, key+open+1, value)
	}
	at, end := int(last.Raw.Offset), int(last.Raw.Offset+last.Raw.Length)
	begin := bytes.LastIndexByte(data[:at], '\n') + 1
	indent, next := string(data[begin:at]), bytes.TrimLeft(data[end:], " \t")
	if begin == 0 || strings.TrimSpace(indent) != "" {
		return insertAt(data, end, ", "+value)
	}
	comma := bytes.HasPrefix(next, []byte(","))
	if next = bytes.TrimLeft(bytes.TrimPrefix(next, []byte(",")), " \t"); bytes.HasPrefix(next, []byte("]")) {
		return insertAt(data, end, ",\n"+indent+value)
	}
	data = insertAt(data, lineEnd(data, end), indent+value+",\n") // behind a comment on the last one
	if !comma {
		data = insertAt(data, end, ",")
	}
	return data
}

func insertAt(data []byte, at int, text string) []byte {
	return append(append(append([]byte(nil), data[:at]...), text...), data[at:]...)
}

// lineEnd is where the line after the one of at begins.
func lineEnd(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(data)
}

// quoteTOML writes a text as a value.
func quoteTOML(text string) string {
	if !strings.ContainsAny(text, "'\n") && strings.ContainsAny(text, `"\`) {
		return "'" + text + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

// replaceFile writes a file beside the one at path, which holds before, then gives it that name. Links stay and lead to
// the new content.
func replaceFile(path string, before, content []byte) error {
	mode := fs.FileMode(0o600)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".codehand-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if now, read := readUserFile(path); err == nil && (read != nil || !bytes.Equal(now, before)) {
		err = errors.New("another program has just changed it")
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
