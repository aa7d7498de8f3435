// Package instructions writes what a server says to the model of a client before it calls anything.
package instructions

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"codehand/server/auth"
	"codehand/server/tenants"
	"codehand/server/toolset"
	"codehand/tools/catalog"
	"codehand/tools/guidance"
	"codehand/tools/session"
	"codehand/tools/tool"
)

const (
	// maxInstructions is how long the server's words to a model may be, in bytes: clients cut longer ones, or drop
	// them.
	maxInstructions = 2_000
	// maxSkillNames is how many bytes of them the names of skills may take.
	maxSkillNames = 600
	// maxProjectNames is how many bytes the names of the project's instructions may take.
	maxProjectNames = 300
)

// common are the sentences of the instructions that are said whatever tools there are.
var common = []string{
	"When a result was shortened, its first line names the file that holds the whole; read that with offset and limit.",
	"An error begins with a code and says what to do next; a refused stale edit shows the change and can be repeated " +
		"at once.",
}

// intro says what codehand is, as far as the tools go that has knows.
func intro(all []tool.Tool, has func(string) bool) string {
	var can []string
	for _, t := range all {
		if verb := t.Spec.Advice.Verb; verb != "" && has(t.Spec.Name) {
			can = append(can, verb)
		}
	}
	if n := len(can); n > 1 {
		can = []string{strings.Join(can[:n-1], ", ") + " and " + can[n-1]}
	}
	if len(can) == 0 {
		return "codehand gives you the hands of a coding agent."
	}
	return "codehand gives you the hands of a coding agent: " + can[0] + " in the user's workspace."
}

// advice is the part of the instructions that depends on nothing but which tools there are: of all, those that has
// knows. The first sentences come first because some clients cut the rest. They are constant bytes, so that prompt
// caches hold.
func advice(all []tool.Tool, has func(string) bool) string {
	lacks := func(name string) bool { return !has(name) }
	said := []tool.Advice{{Rank: tool.CommonRank, Text: strings.Join(common, " ")}}
	for _, t := range all {
		a := t.Spec.Advice
		if a.Text != "" && has(t.Spec.Name) && !slices.ContainsFunc(a.With, lacks) {
			said = append(said, a)
		}
	}
	slices.SortStableFunc(said, func(a, b tool.Advice) int { return cmp.Compare(a.Rank, b.Rank) })
	text := intro(all, has)
	for _, a := range said {
		text += " " + a.Text
	}
	return text
}

// fullAdvice is what is said where nothing is switched off.
func fullAdvice(all []tool.Tool) string { return advice(all, func(string) bool { return true }) }

// An Author writes instructions. Its fields are set once; it is safe for concurrent use.
type Author struct {
	Log       *slog.Logger
	Tools     []tool.Tool // of the server, whatever a tenant may use
	Profiles  toolset.Profiles
	SkillTime time.Duration // for which skills are looked for at most
}

// Instruct makes the server's words to the model of one client: the advice, where its calls work, the tools that the
// client is not shown, and the names of skills and of the project's instructions. They are the same bytes for the same
// configuration, rights, skills and files.
func (a Author) Instruct(ctx context.Context, at *tenants.Tenant, c session.Client, transport string) string {
	all := at.Offers(c.CanAsk).Catalog
	has := func(name string) bool {
		_, ok := slices.BinarySearchFunc(all, name,
			func(e catalog.Entry, name string) int { return strings.Compare(e.Name, name) })
		return ok
	}
	text, skills := advice(a.Tools, has), ""
	if !at.Broken && at.Who.Scopes.Has(auth.Read) {
		text += " " + at.Bare.Situation(at.Start, true)
		if own := a.Profiles.Loads(c.Name, transport); has("read_file") {
			text = enumerate(text, " Before you begin, read the project's own instructions: ",
				guidance.Names(at.Bare, own), maxProjectNames)
		}
	}
	if has("skill") { // first, since they have a bound of their own: many tools leave them their place
		skills = enumerate("", " Skills are instructions for named tasks; the tool skill loads them: ",
			a.skillNames(ctx, at), maxSkillNames)
	}
	if !c.SeesAll && has("tool_search") {
		words := " More tools are found with tool_search and called by their own names: "
		switch {
		case !has("call_tool") || c.ByName:
		case c.ByDispatcher:
			words = " More tools are found with tool_search and called with call_tool: "
		default:
			words = " More tools are found with tool_search and called by their own names or with call_tool: "
		}
		var names []string
		for _, e := range all {
			if e.Deferred {
				names = append(names, e.Name)
			}
		}
		text = enumerate(text, words, names, maxInstructions-len(text)-len(words)-len(".")-len(skills))
	}
	return text + skills
}

// skillNames are those of the skills which a new session of the tenant would tell its model of. Skills say nothing else
// here: the rest of their words is only for who asks for it.
func (a Author) skillNames(ctx context.Context, at *tenants.Tenant) []string {
	if at.Broken || !at.Who.Scopes.Has(auth.Read) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.SkillTime)
	defer cancel()
	set, err := at.Bare.FindSkills(ctx)
	if err != nil {
		a.Log.WarnContext(ctx, "skills cannot be named", "err", err)
		return nil
	}
	var names []string
	for _, k := range set.Skills {
		if !k.ModelOff {
			names = append(names, k.Name)
		}
	}
	return names
}

// enumerate appends words and names to text, as many as most bytes of names and the instructions hold; how many are
// left out is said. With no name there are no words.
func enumerate(text, words string, names []string, most int) string {
	room := min(most, maxInstructions-len(text)-len(words)-len("."))
	list := strings.Join(names, ", ")
	for n := len(names) - 1; n > 0 && len(list) > room; n-- {
		list = fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
	}
	if list == "" || len(list) > room {
		return text
	}
	return text + words + list + "."
}
