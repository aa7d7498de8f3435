package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/tools/permission"
)

// This file holds the requirements of security.md that speak of the program as a whole, each under its number and
// against the built binary. What one room proves alone stands in that room.

// weakening are words that a parameter would have if it made a call less careful.
var weakening = []string{
	"sandbox", "bypass", "force", "unsafe", "privileg", "network", "permission", "mode_override", "allow", "trust", "skip", "disable", "insecure",
	"sudo", "root", "escalat", "policy", "approve", "confirm", "grant", "env", "shell",
}

// harmless are parameters whose name only sounds so.
var harmless = map[string]string{
	"allow_large": "read_file accepts it and it has no effect", "multiline": "",
}

// No argument and no `_meta` weakens anything: no tool has such a parameter, unknown ones are refused, and what the
// operator denied stays denied whatever stands beside it (SEC-22).
func TestSEC22NoArgumentWeakens(t *testing.T) {
	t.Parallel()
	path, err := program()
	must(t, err)
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprint("modern: ", modern), func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			must(t, os.WriteFile(filepath.Join(work, "secret.txt"), []byte("hidden\n"), 0o600))
			p := spawn(t, path, work, "claude-code", modern, map[string]string{"permissions.deny": "Read(secret.txt),Bash(touch *)"})
			r, err := p.request("tools/list", nil)
			must(t, err)
			var list struct {
				Tools []struct {
					Name        string
					InputSchema struct {
						Properties           map[string]struct{ Type string }
						Required             []string
						AdditionalProperties *bool
					}
				}
			}
			must(t, json.Unmarshal(r.Result, &list))
			calls := 0
			for _, x := range list.Tools {
				if open := x.InputSchema.AdditionalProperties; open == nil || *open {
					t.Errorf("%s takes parameters that it does not name", x.Name)
				}
				for name := range x.InputSchema.Properties {
					if i := slices.IndexFunc(weakening, func(w string) bool { return strings.Contains(strings.ToLower(name), w) }); i >= 0 {
						if _, ok := harmless[name]; !ok {
							t.Errorf("%s has a parameter %s: nothing that a model says may weaken a call", x.Name, name)
						}
					}
				}
				base := map[string]any{}
				for _, name := range x.InputSchema.Required {
					switch x.InputSchema.Properties[name].Type {
					case "integer":
						base[name] = 1
					case "boolean":
						base[name] = false
					case "array":
						base[name] = []any{}
					default:
						base[name] = "x"
					}
				}
				for _, word := range weakening {
					for _, key := range []string{word, word + "_mode", "dangerously_" + word, "no_" + word} {
						for _, value := range []any{true, "true", 1, map[string]any{"level": 0}} {
							args := map[string]any{key: value}
							for k, v := range base {
								args[k] = v
							}
							raw, err := json.Marshal(args)
							must(t, err)
							if text := p.must(t, x.Name, string(raw)); !strings.HasPrefix(text, "! INPUT_INVALID") {
								t.Fatalf("%s %s: %s", x.Name, raw, text)
							}
							calls++
						}
					}
				}
			}
			for _, key := range []string{"sandbox", "dangerouslyDisableSandbox", "shellExecutable"} {
				for _, value := range []string{`true`, `"true"`, `"off"`, `"/bin/sh"`, `1`} {
					text := p.must(t, "run_shell", fmt.Sprintf(`{"command":"true",%q:%s}`, key, value))
					if !strings.HasPrefix(text, "! INPUT_INVALID") || !strings.Contains(text, "the operator sets them") {
						t.Errorf("%s %s: %s", key, value, text)
					}
					calls++
				}
			}
			for _, word := range weakening {
				for _, value := range []any{true, "bypassPermissions", map[string]any{"decision": "allow"}} {
					meta := map[string]any{word: value, "codehand/" + word: value, "codehand/mode": "bypassPermissions", "codehand/decision": map[string]any{"decision": "allow"}}
					for name, args := range map[string]string{
						"read_file": `{"file_path":"secret.txt"}`, "run_shell": `{"command":"touch made"}`, "grep_search": `{"pattern":"hidden","path":"secret.txt"}`,
					} {
						r, err := p.request("tools/call", map[string]any{"name": name, "arguments": json.RawMessage(args), "_meta": meta})
						must(t, err)
						if body := string(r.Result); !strings.Contains(body, "PERMISSION_DENIED") || strings.Contains(body, "hidden\\n") {
							t.Fatalf("%s with _meta %v: %s", name, meta, body)
						}
						calls++
					}
				}
			}
			if _, err := os.Stat(filepath.Join(work, "made")); err == nil {
				t.Error("the command ran")
			}
			t.Logf("%d tools, %d calls, none of which weakened anything", len(list.Tools), calls)
		})
	}
}

// Every call is in the record, no planted secret is, and each damage to it is found; serve refuses to work without it
// (SEC-44). TestAuditIsClean has the 30 kinds of secrets, TestAuditFullDisk the disk that fills up in the middle.
func TestSEC44Audit(t *testing.T) {
	t.Parallel()
	path, err := program()
	must(t, err)
	work, dir := t.TempDir(), filepath.Join(t.TempDir(), "audit")
	p := spawn(t, path, work, "claude-code", false, map[string]string{"audit.dir": dir, "permissions.deny": "Edit(denied/**),Bash(false *)"})
	calls, changes := 0, 0
	for i, secret := range planted {
		name := filepath.Join(work, fmt.Sprint("f", i))
		command := fmt.Sprintf(secret.command, secret.secret)
		for _, c := range []struct {
			tool, args string
			starts     bool
		}{
			{"write_file", asJSON(t, "file_path", name, "content", "key "+secret.secret+"\n"), true},
			{"read_file", asJSON(t, "file_path", name), false},
			{"edit_file", asJSON(t, "file_path", name, "old_string", secret.secret, "new_string", "other "+secret.secret), true},
			{"run_shell", asJSON(t, "command", command, "timeout", 20_000), permission.Analyze(command, nil).Class != permission.ReadOnly},
			{"run_shell", asJSON(t, "command", "false || "+command), false},
			{"write_file", asJSON(t, "file_path", filepath.Join(work, "denied", "f"), "content", secret.secret), false},
			{"edit_file", asJSON(t, "file_path", name, secret.secret, secret.secret), false},
			{"grep_search", asJSON(t, "pattern", "password = "+secret.secret, "output_mode", "content"), false},
		} {
			p.must(t, c.tool, c.args)
			calls++
			if c.starts {
				changes++
			}
		}
	}
	must(t, p.in.Close())
	must(t, p.cmd.Wait())
	done, starts := 0, 0
	for _, m := range allAudit(t, dir) {
		switch m["ev"] {
		case "call.done":
			done++
			if m["code"] == "PERMISSION_DENIED" && m["rule"] == "" {
				t.Errorf("a refusal without its rule: %v", m)
			}
		case "call.start":
			starts++
		}
	}
	if done != calls || starts != changes {
		t.Errorf("%d calls and %d changes; the record has %d and %d", calls, changes, done, starts)
	}
	files, err := auditFiles(dir)
	must(t, err)
	whole, err := os.ReadFile(filepath.Join(dir, files[0].name))
	must(t, err)
	for _, secret := range planted {
		if at := strings.Index(string(whole), secret.secret); at >= 0 {
			t.Errorf("%q is in the record: …%s…", secret.secret, whole[max(0, at-150):at+20])
		}
	}

	lines := strings.SplitAfter(strings.TrimSuffix(string(whole), "\n"), "\n")
	found := 0
	for i := 1; i < len(lines)-1; i += 37 {
		for what, damaged := range map[string][]string{
			"changed": append(append(slices.Clone(lines[:i]), strings.Replace(lines[i], `"tool":"`, `"tool":"x`, 1)), lines[i+1:]...),
			"deleted": append(slices.Clone(lines[:i]), lines[i+1:]...),
			"swapped": append(append(slices.Clone(lines[:i-1]), lines[i], lines[i-1]), lines[i+1:]...),
			"cut":     append(append(slices.Clone(lines[:i]), lines[i][:len(lines[i])/2]+"\n"), lines[i+1:]...),
		} {
			other := filepath.Join(t.TempDir(), "audit")
			must(t, os.Mkdir(other, 0o700))
			must(t, os.WriteFile(filepath.Join(other, files[0].name), []byte(strings.Join(damaged, "")), 0o600))
			if _, err := CheckAudit(other); err == nil {
				t.Errorf("line %d %s: not found", i, what)
			}
			found++
		}
	}
	t.Logf("%d calls in %d lines, %d planted secrets, %d damages found", calls, len(lines), len(planted), found)
}
