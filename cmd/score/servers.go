//go:build score

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A call is a request for a tool of a server.
type call struct {
	tool string
	args map[string]any
}

// A server is one that the cases are played on.
type server struct {
	name, version string
	drive         string // stands before paths that it is told: Z: under Wine
	// command starts it with one root.
	command func(root string) *exec.Cmd
	// prepare are calls that give it the root, if its command line cannot.
	prepare func(root string) []call
	// calls maps a request of a case, with paths below dir, to the server's nearest tools; nil: it has none.
	calls func(args []string, dir string) []call
	// more is the call by which the rest of an answer is fetched; nil: that was all.
	more func(answer string) *call
}

type args = map[string]any

// servers are codehand and the others of which modules are installed.
func servers(ours, modules string) []*server {
	all := []*server{{
		name: "codehand", version: strings.TrimSpace(output(ours, "--version")),
		command: func(root string) *exec.Cmd { return exec.Command(ours, "stdio", root) },
		calls:   codehandCalls,
	}}
	return append(all, peers(modules)...)
}

// other is a codehand for another system or processor, with the program that runs it: qemu-aarch64 codehand-arm64.
func other(line, drive string) *server {
	words := strings.Fields(line)
	return &server{
		name: "codehand", drive: drive, calls: codehandCalls,
		version: strings.TrimSpace(output(words[0], append(words[1:], "--version")...)),
		command: func(root string) *exec.Cmd {
			return exec.Command(words[0], append(slices.Clone(words[1:]), "stdio", drive+root)...)
		},
	}
}

// peers are the other servers of which modules are installed.
func peers(modules string) (all []*server) {
	installed := func(module, program string) (path, version string, ok bool) {
		for dir := range strings.SplitSeq(modules, ",") {
			b, err := os.ReadFile(filepath.Join(dir, module, "package.json"))
			var p struct{ Version string }
			if err != nil || json.Unmarshal(b, &p) != nil {
				continue
			}
			path, err = filepath.Abs(filepath.Join(dir, module, program))
			return path, module + " " + p.Version, err == nil
		}
		return "", "", false
	}
	if main, version, ok := installed("@modelcontextprotocol/server-filesystem", "dist/index.js"); ok {
		all = append(all, &server{
			name: "server-filesystem", version: version, calls: filesystemCalls,
			command: func(root string) *exec.Cmd { return exec.Command("node", main, root) },
		})
	}
	if main, version, ok := installed("@wonderwhy-er/desktop-commander", "dist/index.js"); ok {
		all = append(all, &server{
			name: "desktop-commander", version: version, calls: commanderCalls, more: commanderMore,
			command: func(string) *exec.Cmd { return exec.Command("node", main, "--no-onboarding") },
			prepare: func(root string) []call {
				return []call{{"set_config_value", args{"key": "allowedDirectories", "value": []string{root}}}}
			},
		})
	}
	if main, version, ok := installed("@anthropic-ai/claude-code-linux-x64", "claude"); ok {
		all = append(all, &server{
			name: "claude-mcp-serve", version: version, calls: claudeCalls,
			command: func(string) *exec.Cmd { return exec.Command(main, "mcp", "serve") },
		})
	}
	return all
}

func output(name string, arg ...string) string {
	b, _ := exec.Command(name, arg...).Output()
	return string(b)
}

// in is a command line that runs in a directory.
func in(dir, command string) string { return "cd '" + dir + "'\n" + command }

func codehandCalls(a []string, dir string) []call {
	switch a[0] {
	case "read":
		return []call{{"read_file", section(args{"file_path": below(dir, a[1])}, a)}}
	case "write":
		return []call{{"write_file", args{"file_path": below(dir, a[1]), "content": a[2]}}}
	case "edit", "editall":
		all := args{"file_path": below(dir, a[1]), "old_string": a[2], "new_string": a[3]}
		if a[0] == "editall" {
			all["replace_all"] = true
		}
		return []call{{"edit_file", all}}
	case "find":
		return []call{{"list_files", args{"pattern": a[1], "path": dir}}}
	case "grep":
		return []call{{"grep_search", args{"pattern": a[1], "path": dir, "output_mode": "content"}}}
	case "run":
		return []call{{"run_shell", args{"command": in(dir, a[1])}}}
	case "run5":
		return []call{{"run_shell", args{"command": in(dir, a[1]), "timeout": 5000}}}
	}
	return nil
}

func filesystemCalls(a []string, dir string) []call {
	switch a[0] {
	case "read":
		all := args{"path": below(dir, a[1])}
		if len(a) > 3 {
			if a[2] != "1" {
				return nil
			}
			all["head"], _ = strconv.Atoi(a[3])
		}
		return []call{{"read_text_file", all}}
	case "write":
		return []call{{"write_file", args{"path": below(dir, a[1]), "content": a[2]}}}
	case "edit":
		edits := []args{{"oldText": a[2], "newText": a[3]}}
		return []call{{"edit_file", args{"path": below(dir, a[1]), "edits": edits}}}
	case "find":
		return []call{{"search_files", args{"path": dir, "pattern": a[1]}}}
	}
	return nil
}

func commanderCalls(a []string, dir string) []call {
	switch a[0] {
	case "read":
		all := args{"path": below(dir, a[1])}
		if len(a) > 3 {
			from, _ := strconv.Atoi(a[2])
			n, _ := strconv.Atoi(a[3])
			all["offset"], all["length"] = from-1, n
		}
		return []call{{"read_file", all}}
	case "write":
		return []call{{"write_file", args{"path": below(dir, a[1]), "content": a[2], "mode": "rewrite"}}}
	case "edit", "editall":
		all := args{"file_path": below(dir, a[1]), "old_string": a[2], "new_string": a[3]}
		if a[0] == "editall" {
			b, _ := os.ReadFile(below(dir, a[1]))
			all["expected_replacements"] = max(1, strings.Count(string(b), a[2]))
		}
		return []call{{"edit_block", all}}
	case "find":
		return []call{{"start_search", args{"path": dir, "pattern": a[1], "searchType": "files"}}}
	case "grep":
		return []call{{"start_search", args{"path": dir, "pattern": a[1], "searchType": "content"}}}
	case "run":
		return []call{{"start_process", args{"command": in(dir, a[1]), "timeout_ms": 30000}}}
	case "run5":
		return []call{{"start_process", args{"command": in(dir, a[1]), "timeout_ms": 5000}}}
	}
	return nil
}

var search = regexp.MustCompile(`(?i)session:? (search_\S+)`)

func commanderMore(answer string) *call {
	m := search.FindStringSubmatch(answer)
	if m == nil || !strings.Contains(answer, "get_more_search_results") {
		return nil
	}
	return &call{"get_more_search_results", args{"sessionId": m[1]}}
}

func claudeCalls(a []string, dir string) []call {
	switch a[0] {
	case "read":
		return []call{{"Read", section(args{"file_path": below(dir, a[1])}, a)}}
	case "write":
		return []call{{"Write", args{"file_path": below(dir, a[1]), "content": a[2]}}}
	case "edit", "editall":
		return []call{{"Edit", args{
			"file_path": below(dir, a[1]), "old_string": a[2], "new_string": a[3], "replace_all": a[0] == "editall",
		}}}
	case "run":
		return []call{{"Bash", args{"command": in(dir, a[1])}}}
	case "run5":
		return []call{{"Bash", args{"command": in(dir, a[1]), "timeout": 5000}}}
	}
	return nil
}

// section adds which lines of a file are read.
func section(all args, a []string) args {
	if len(a) > 3 {
		all["offset"], _ = strconv.Atoi(a[2])
		all["limit"], _ = strconv.Atoi(a[3])
	}
	return all
}

// below is a path of a case.
func below(dir, path string) string {
	if filepath.IsAbs(path) || strings.Contains(path, ":/") {
		return path
	}
	return dir + "/" + path // not cleaned: .. stays
}
