package blackbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestMountedReferenceServers: the reference servers from npm, on stdio and in serve, in both eras: each of their tools
// is found by the words of its name, by those and its server's, and by what it does, and returns what it should.
func TestMountedReferenceServers(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "fetches servers from npm")
	dir := leaktest.Dir(t)
	install := exec.Command("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", dir,
		"@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-memory",
		"@modelcontextprotocol/server-filesystem", "@modelcontextprotocol/server-sequential-thinking")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var table strings.Builder
	table.WriteString("[quota.default]\ncalls_per_minute = 0\n")
	for _, s := range [][2]string{
		{"everything", "mcp-server-everything"},
		{"memory", "mcp-server-memory"},
		{"files", "mcp-server-filesystem '" + os.TempDir() + "'"},
		{"thinking", "mcp-server-sequential-thinking"},
	} {
		fmt.Fprintf(&table, "[mcp.servers.%s]\ncommand = \"/bin/sh\"\nargs = [\"-c\", %q]\n", s[0],
			`MEMORY_FILE_PATH="$PWD/memory.json" exec '`+filepath.Join(dir, "node_modules", ".bin")+"'/"+s[1])
	}
	set := mountConfig(t, table.String(), "permissions.allow", "mcp__everything,mcp__memory,mcp__files,mcp__thinking")
	type use struct{ name, input, want, does string }
	uses := map[string][]use{
		"everything": {
			{"echo", `{"message":"hello"}`, "\nEcho: hello\n", "echoes back the input string"},
			{"get-annotated-message", `{"messageType":"error"}`, "Error: Operation failed", "message with annotations metadata"},
			{"get-env", `{}`, `"PATH"`, "returns all environment variables"},
			{"get-resource-links", `{"count":2}`, "\nResource: demo://resource/", "links to resources"},
			{"get-resource-reference", `{"resourceType":"Text","resourceId":1}`, "Resource demo://resource/dynamic/text/1", "a reference to a resource"},
			{"get-structured-content", `{"location":"New York"}`, `"temperature"`, "structured content with an output schema"},
			{"get-sum", `{"a":1,"b":2}`, "The sum of 1 and 2 is 3.", "sum of two numbers"},
			{"get-tiny-image", `{}`, "image/png", "returns a tiny image of the logo"},
			{"gzip-file-as-resource", `{"name":"a.gz","data":"data:text/plain,hello","outputType":"resource"}`, "application/gzip", "compress a file with gzip"},
			{"toggle-simulated-logging", `{}`, "tarted simulated", "simulated random logging on or off"},
			{"toggle-subscriber-updates", `{}`, "tarted simulated", "simulated resource subscription updates"},
			{"trigger-long-runnin_39dfed1f", `{"duration":1,"steps":2}`, "Long running operation completed. Duration: 1 seconds, Steps: 2.", "long running operation with progress"},
			{"trigger-elicitation-request", `{}`, "Ann", "request user elicitation from the server"},
		},
		"memory": {
			{"create_entities", `{"entities":[{"name":"n1","entityType":"t","observations":["o1"]},{"name":"n2","entityType":"t","observations":["o2"]}]}`, `"n2"`, "create new entities in the knowledge graph"},
			{"create_relations", `{"relations":[{"from":"n1","to":"n2","relationType":"knows"}]}`, `"knows"`, "new relations between entities"},
			{"add_observations", `{"observations":[{"entityName":"n1","contents":["o3"]}]}`, `"o3"`, "add observations to existing entities"},
			{"read_graph", `{}`, `"o3"`, "read the entire knowledge graph"},
			{"search_nodes", `{"query":"o2"}`, `"n2"`, "search for nodes in the knowledge graph"},
			{"open_nodes", `{"names":["n1"]}`, `"n1"`, "open nodes by their names"},
			{"delete_observations", `{"deletions":[{"entityName":"n1","observations":["o3"]}]}`, "deleted successfully", "delete observations from entities"},
			{"delete_relations", `{"relations":[{"from":"n1","to":"n2","relationType":"knows"}]}`, "deleted successfully", "delete relations from the knowledge graph"},
			{"delete_entities", `{"entityNames":["n1","n2"]}`, "deleted successfully", "delete entities and their relations"},
		},
		"files": {
			{"write_file", `{"path":"$WORK/a.txt","content":"one\n"}`, "Successfully wrote", "+files create a new file or overwrite it"},
			{"edit_file", `{"path":"$WORK/a.txt","edits":[{"oldText":"one","newText":"two"}]}`, "+two", "+files line based edits to a text file"},
			{"read_file", `{"path":"$WORK/a.txt"}`, "\ntwo\n", "+files read the contents of a file deprecated"},
			{"read_text_file", `{"path":"$WORK/a.txt"}`, "\ntwo\n", "+files read a file as text"},
			{"read_media_file", `{"path":"$WORK/a.png"}`, "image/png", "+files read image or audio media"},
			{"read_multiple_files", `{"paths":["$WORK/a.txt"]}`, "two", "+files read multiple files simultaneously"},
			{"create_directory", `{"path":"$WORK/d"}`, "Successfully created", "+files create a directory"},
			{"list_directory", `{"path":"$WORK"}`, "[FILE] a.txt", "+files listing of a directory"},
			{"list_directory_with_sizes", `{"path":"$WORK"}`, "4 B", "+files directory listing with sizes"},
			{"directory_tree", `{"path":"$WORK"}`, `"name": "a.txt"`, "+files recursive tree of directories"},
			{"search_files", `{"path":"$WORK","pattern":"**/*.txt"}`, "$WORK/a.txt", "+files search for files that match a glob pattern"},
			{"get_file_info", `{"path":"$WORK/a.txt"}`, "size: 4", "+files metadata of a file"},
			{"move_file", `{"source":"$WORK/a.txt","destination":"$WORK/d/b.txt"}`, "Successfully moved", "+files move or rename files"},
			{"list_allowed_directories", `{}`, os.TempDir(), "+files directories that the server may access"},
		},
		"thinking": {{"sequentialthinking", `{"thought":"x","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, `"thoughtNumber": 1`, "think step by step about a problem"}},
	}
	eachPlanner(t, replaytest.Declared, set, func(t *testing.T, p *planner) {
		p.put("$WORK/a.png", "\x89PNG\r\n\x1a\n")
		for server, all := range uses {
			for _, u := range all {
				name := "mcp__" + server + "__" + u.name
				if u.name == "trigger-elicitation-request" {
					a := p.Call(name, u.input, func(q string) string {
						if !strings.HasPrefix(q, "The server everything asks:\n") {
							t.Errorf("asked %q", q)
						}
						return accepts(`{"name":"Ann"}`)
					})
					if a.Failed || a.Asked != 1 || !strings.Contains(a.Text, u.want) {
						t.Errorf("%s: %+v", name, a)
					}
					continue
				}
				if a := p.do(name, u.input); a.Failed || !strings.Contains(a.Text, p.args(u.want)) {
					t.Errorf("%s: %+v, want %q", name, a, u.want)
				}
			}
		}
		p.holds("$WORK/d/b.txt", "two\n")
		for server, all := range uses { // calls wait for a server that starts, and searches for a moment only
			for _, u := range all {
				name, words := "mcp__"+server+"__"+u.name, strings.NewReplacer("_", " ", "-", " ", "runnin_39dfed1f", "running operation").Replace(u.name)
				for _, query := range []string{server + " " + words, "+" + server + " " + words, u.does} {
					if !p.finds(query, name) {
						t.Errorf("%q does not find %s", query, name)
					}
				}
			}
		}
	})
}
