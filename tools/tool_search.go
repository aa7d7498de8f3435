package tools

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"codehand/tools/catalog"
	"codehand/tools/mounts"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed tool_search.md
var toolSearchText string

type toolSearchInput struct {
	Query      string `json:"query" jsonschema:"words, +word that the name must have, or select:NAME,NAME" rule:"minlen=1 maxlen=1000"`
	MaxResults int    `json:"max_results,omitempty" jsonschema:"most tools to return" rule:"min=1 max=20 default=5"`
}

// toolSearch is ReadOnly and Parallel although a search in a legacy session adds to the list of its tools: that list is
// all that it changes, and its cell takes one change after the other.
func toolSearch(mounted *mounts.Mounts) tool.Tool {
	return tool.Define(tool.Def[toolSearchInput]{
		Spec: tool.Spec{
			Name: "tool_search", Aliases: []string{"ToolSearch"}, Title: "Find tools", Description: toolSearchText,
			Hint: "find and load further tools", MaxRunes: 50000, Scope: tool.ScopeRead, Family: permission.FamilyNone,
			Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
			ForAgents: tool.ProgramAgents,
			Example:   `{"query":"plan"}`,
			NoTargets: "it looks through names of tools only",
		},
		Activity: func(toolSearchInput) string { return "Looking for tools" },
		Run: func(ctx context.Context, env tool.Env, in toolSearchInput) (tool.Result, error) {
			starting := toolSearchMounted(ctx, &env, mounted, in.Query)
			r, err := runToolSearch(ctx, env, in)
			for _, server := range starting {
				r.Text += "\n[the server " + server + " is starting; search again for its tools]"
			}
			return r, err
		},
	})
}

// toolSearchMounted starts the mounted servers, and waits a moment for the tools of those that nobody knows yet. It
// returns the servers that are still starting.
func toolSearchMounted(ctx context.Context, env *tool.Env, mounted *mounts.Mounts, query string) (starting []string) {
	nothing := len(catalog.Find(env.Catalog, query).Entries) == 0
	arrived, starting := mounted.Await(ctx, env.Key, func(server string) bool {
		return nothing || strings.Contains(strings.ToLower(query), strings.ReplaceAll(server, "_", " ")) ||
			strings.Contains(strings.ToLower(query), server)
	})
	if arrived && env.Relist != nil {
		own := *env.State
		env.Relist(&own)
		env.State = &own
	}
	return starting
}

const (
	mostSelected = 20 // tools that one select gives, whatever max_results says: it names what it wants
	mostNamed    = 10 // names in a note, and lines about names that are none
)

func runToolSearch(ctx context.Context, env tool.Env, in toolSearchInput) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	found, most := catalog.Find(env.Catalog, in.Query), in.MaxResults
	if found.Named {
		most = mostSelected
	}
	if len(found.Entries) == 0 {
		return tool.Result{Text: toolSearchNothing(env.Catalog) + toolSearchUnknown(found.Unknown)}, nil
	}
	text, shown, err := toolSearchFit(env, found, min(most, len(found.Entries)))
	if err != nil {
		return tool.Result{}, err
	}
	changed, err := toolSearchActivate(ctx, env, shown)
	if err != nil { // what is not listed can be called all the same
		text += "\n[the state store does not answer: these tools can be called, but will not be listed]"
	}
	return tool.Result{Text: text, ListChanged: changed}, nil
}

// toolSearchFit is the answer with at most n functions, with fewer if it would not fit the client otherwise: half a
// schema is worse than none. One is always there.
func toolSearchFit(env tool.Env, found catalog.Found, n int) (text string, shown []catalog.Entry, err error) {
	functions := make([]string, n)
	for i, e := range found.Entries[:n] {
		function, err := e.Function()
		if err != nil {
			return "", nil, fmt.Errorf("encode the tool %s: %w", e.Name, err)
		}
		functions[i] = "<function>" + string(function) + "</function>\n"
	}
	room, callable := wording.Form(env, 0, 0), toolSearchCallable(env)
	note := "[%d more match: %s]"
	if len(found.Entries)-n > mostNamed {
		note = "[%d more match: %s; to see them add words of what you need, or +word of their names]"
	}
	for ; ; n-- {
		text = "<functions>\n" + strings.Join(functions[:n], "") +
			"</functions>\n" + callable + toolSearchUnknown(found.Unknown)
		if left := found.Entries[n:]; len(left) > 0 {
			text += "\n" + fmt.Sprintf(note, len(left), toolSearchNames(left, mostNamed))
		}
		if n == 1 || room.Fits(text) {
			return text, found.Entries[:n], nil
		}
		note = "[%d more match and do not fit here: %s; select them by name]"
	}
}

// toolSearchCallable says how the tools that were found are called by this client's model.
func toolSearchCallable(env tool.Env) string {
	// it may be denied
	dispatcher := slices.ContainsFunc(env.Catalog, func(e catalog.Entry) bool { return e.Name == "call_tool" })
	switch {
	case !dispatcher || env.Client.ByName:
		return "These tools can be called now, by name."
	case env.Client.ByDispatcher:
		return "These tools can be called now, through call_tool; by name only if they are in your list of tools."
	}
	return "These tools can be called now, by name or through call_tool."
}

// toolSearchActivate puts the deferred ones of these tools on the list of a session whose list depends on it, and says
// whether that changed it.
func toolSearchActivate(ctx context.Context, env tool.Env, shown []catalog.Entry) (changed bool, err error) {
	var names []string
	for _, e := range shown {
		if e.Deferred {
			names = append(names, e.Name)
		}
	}
	if c := env.Client; c.Modern && !c.Rereads || c.SeesAll || len(names) == 0 {
		return false, nil
	}
	return session.Activate(ctx, env.Active, names)
}

// toolSearchNothing names all that there would be to find. Of the tools of a mounted server that has many the first are
// named.
func toolSearchNothing(all []catalog.Entry) string {
	var names, more []string
	mounted := map[string]int{}
	for _, e := range all {
		if !e.Deferred {
			continue
		}
		server, ok := mounts.ServerOf(e.Name)
		if ok {
			mounted[server]++
		}
		if mounted[server] <= mostNamed {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 {
		return "No matching tools found: all tools are already listed."
	}
	for _, server := range slices.Sorted(maps.Keys(mounted)) {
		if left := mounted[server] - mostNamed; left > 0 {
			more = append(more,
				fmt.Sprintf("\n[%d more of the server %s: +%[2]s and words of what you need]", left, server))
		}
	}
	return "No matching deferred tools found. All: " + strings.Join(names, ", ") + strings.Join(more, "")
}

// toolSearchNames are the first names, at most so many.
func toolSearchNames(entries []catalog.Entry, most int) string {
	var names []string
	for _, e := range entries[:min(most, len(entries))] {
		names = append(names, e.Name)
	}
	if len(entries) > most {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}

// toolSearchUnknown has a line for each name that is none.
func toolSearchUnknown(unknown []catalog.Unknown) string {
	var b strings.Builder
	for _, u := range unknown[:min(mostNamed, len(unknown))] {
		b.WriteString("\nUnknown tool: " + u.Name + ".")
		if len(u.Near) > 0 {
			b.WriteString(" Nearest: " + strings.Join(u.Near, ", ") + ".")
		}
	}
	if left := len(unknown) - mostNamed; left > 0 {
		fmt.Fprintf(&b, "\n[%d more names are unknown]", left)
	}
	return b.String()
}
