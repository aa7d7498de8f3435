package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"codehand/server/clients"
	"codehand/server/clients/install/forms"
)

// An Other is a server that a client's file names besides us, as it stands there: its variables are not replaced.
type Other struct {
	Entry
	File    string            // as the system writes it
	Headers map[string]string // of a remote server
	SSE     bool              // the client is told that it speaks SSE
	Left    []string          // keys of the entry that nothing here stands for, sorted
}

// Others are the other servers that a client's own file and those of the project name, in the order of their files and
// names. Of two of one name the first counts. The error names the file that cannot be read.
func Others(p Places, client string) ([]Other, error) {
	local := clients.Local(clients.Launch{})
	i := slices.IndexFunc(local, func(s clients.Snippet) bool { return s.ID == client })
	if i < 0 {
		return nil, fmt.Errorf("no client is called %s; there are: %s", client, strings.Join(Clients(), ", "))
	}
	s := local[i]
	var all []Other
	seen := map[string]bool{}
	for _, at := range append([]string{p.first(s, p.userFiles(s))}, p.projectFiles(s)...) {
		if at == "" {
			continue
		}
		r, err := p.read(at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		want, err := forms.For(at).Decode([]byte(s.Text))
		if err != nil {
			return nil, err
		}
		container := forms.Container(want)
		top, _ := r.tree.(map[string]any)
		trees := []any{top[container]}
		if projects, ok := top["projects"].(map[string]any); ok { // Claude Code keeps servers of one directory there
			if here, ok := projects[p.Project].(map[string]any); ok {
				trees = append(trees, here[container])
			}
		}
		for _, tree := range trees {
			for _, o := range othersIn(tree) {
				p.recognize(&o.Entry, nil)
				if o.Name != forms.Name && !o.Ours() && !seen[o.Name] {
					seen[o.Name] = true
					o.File = at
					all = append(all, o)
				}
			}
		}
	}
	return all, nil
}

// othersIn reads the entries of a container, which is a table or a list.
func othersIn(container any) []Other {
	var all []Other
	switch servers := container.(type) {
	case map[string]any:
		for _, key := range sortedKeys(servers) {
			if table, ok := servers[key].(map[string]any); ok {
				all = append(all, readOther(key, table))
			}
		}
	case []any:
		for _, item := range servers {
			if table, ok := item.(map[string]any); ok {
				name, _ := table["name"].(string)
				all = append(all, readOther(name, table))
			}
		}
	}
	return all
}

// understood are the keys that readOther reads, and those that change nothing for a server that we start.
var understood = strings.Fields("command cmd args cwd url serverUrl httpUrl uri env envs environment disabled " +
	"enabled type transport headers http_headers env_http_headers bearer_token_env_var env_vars requestInit name " +
	"description display_name source gallery version bundled timeout startup_timeout_sec tool_timeout_sec " +
	"autoApprove alwaysAllow trust")

// readOther reads an entry in any client's spelling.
func readOther(name string, table map[string]any) Other {
	o := Other{Entry: readEntry(name, table), Headers: map[string]string{}}
	pairs := func(v any, form string) {
		values, _ := v.(map[string]any)
		for name, v := range values {
			if s, ok := v.(string); ok {
				o.Headers[name] = fmt.Sprintf(form, s)
			}
		}
	}
	pairs(table["headers"], "%s")
	pairs(table["http_headers"], "%s")
	pairs(table["env_http_headers"], "${%s}")
	if init, ok := table["requestInit"].(map[string]any); ok {
		pairs(init["headers"], "%s")
	}
	if variable, _ := table["bearer_token_env_var"].(string); variable != "" {
		o.Headers["Authorization"] = "Bearer ${" + variable + "}"
	}
	for _, variable := range texts(table["env_vars"]) {
		if o.Env == nil {
			o.Env = map[string]string{}
		}
		o.Env[variable] = "${" + variable + "}"
	}
	kind, _ := table["type"].(string)
	if kind == "" {
		kind, _ = table["transport"].(string)
	}
	o.SSE = strings.EqualFold(kind, "sse")
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if !slices.Contains(understood, key) {
			o.Left = append(o.Left, key)
		}
	}
	return o
}
