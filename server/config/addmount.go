package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"codehand/server/clients/install/forms"
)

// AddMount adds the table of a mounted server to an operator's file, which is made if there is none. All else that
// stands there stays byte for byte. Errors: the file has such a table, the server cannot be meant so, or the file
// cannot be written.
func AddMount(path string, m Mount) error {
	adding.Lock()
	defer adding.Unlock()
	data, err := readUserFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	after, err := withMount(data, m)
	if err != nil {
		return err
	}
	if err := replaceFile(path, data, after); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// RemoveMount removes the table of a mounted server from an operator's file. All else that stands there stays byte for
// byte. Errors: the file has no such table, it cannot be taken out as it is written, or the file cannot be written.
func RemoveMount(path, name string) error {
	adding.Lock()
	defer adding.Unlock()
	data, err := readUserFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	after, err := withoutMount(data, name)
	if err == nil {
		err = replaceFile(path, data, after)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// withoutMount is the text of a file of settings without one server.
func withoutMount(data []byte, name string) ([]byte, error) {
	at := append(slices.Clone(mountsTable), name)
	var before, after map[string]any
	if err := toml.Unmarshal(data, &before); err != nil {
		return nil, err
	}
	if lookup(before, at) == nil {
		return nil, fmt.Errorf("mcp.servers.%s is not there", name)
	}
	left := forms.RemoveTable(data, at...)
	if err := toml.Unmarshal(left, &after); err != nil || lookup(after, at) != nil {
		return nil, fmt.Errorf("mcp.servers.%s cannot be removed as it is written; remove it by hand", name)
	}
	return left, nil
}

// MountText is the table of a mounted server, as it stands in a file.
func MountText(m Mount) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp.servers.%s]\n", m.Name)
	if m.At.URL != "" {
		fmt.Fprintf(&b, "url = %s\n", quoteTOML(m.At.URL))
	}
	if len(m.Program.Argv) > 0 {
		fmt.Fprintf(&b, "command = %s\n", quoteTOML(m.Program.Argv[0]))
	}
	if len(m.Program.Argv) > 1 {
		var args []string
		for _, a := range m.Program.Argv[1:] {
			args = append(args, quoteTOML(a))
		}
		fmt.Fprintf(&b, "args = [%s]\n", strings.Join(args, ", "))
	}
	if m.Program.Cwd != "" {
		fmt.Fprintf(&b, "cwd = %s\n", quoteTOML(m.Program.Cwd))
	}
	if m.Sandbox {
		b.WriteString("sandbox = true\n")
	}
	if t := m.At.Transport; t != "" && t != autoTransport {
		fmt.Fprintf(&b, "transport = %s\n", quoteTOML(t))
	}
	for _, table := range []struct {
		name  string
		pairs map[string]string
	}{{"env", m.Program.Env}, {"headers", m.At.Headers}} {
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(table.pairs)) {
			pairs = append(pairs, quoteTOML(name)+" = "+quoteTOML(table.pairs[name]))
		}
		if pairs != nil {
			fmt.Fprintf(&b, "%s = {%s}\n", table.name, strings.Join(pairs, ", "))
		}
	}
	return b.String()
}

// withMount is the text of a file of settings with one server more, by its own account and by the loader's.
func withMount(data []byte, m Mount) ([]byte, error) {
	if err := checkMountName(m.Name); err != nil {
		return nil, err
	}
	var before map[string]any
	if err := toml.Unmarshal(data, &before); err != nil {
		return nil, err
	}
	if lookup(before, append(slices.Clone(mountsTable), m.Name)) != nil {
		return nil, fmt.Errorf("mcp.servers.%s is there already", m.Name)
	}
	text := MountText(m)
	if len(m.Program.Argv) == 0 && m.At.URL == "" {
		return nil, errors.New("needs command or url")
	}
	l := loader{env: map[string]string{}}
	entries, err := parse("", []byte(text))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		l.mount(e, input{raw: e.raw, lines: e.lines, file: true})
	}
	checkMounts(&l)
	if len(l.problems) > 0 {
		return nil, errors.New(l.problems[0].Text)
	}
	whole := []byte(text)
	if len(data) > 0 {
		whole = append(bytes.TrimRight(slices.Clone(data), "\n"), []byte("\n\n"+text)...)
	}
	var after map[string]any
	if err := toml.Unmarshal(whole, &after); err != nil {
		return nil, errors.New("nothing can be added to the file as it is written; add the table by hand")
	}
	return whole, nil
}
