package server

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/results"
	"codehand/tools/skills"
)

const (
	// maxCompletions is how many values one answer has (the protocol's own limit).
	maxCompletions = 100
	// maxHint is how many characters of a hint are looked at.
	maxHint = 1_000
)

// completions completes the variables of resource templates and the arguments of prompts, with what the caller's session
// has. What it does not know has none.
type completions struct{ s *Server }

// CompleteResourceArgument returns ids, names and paths that begin with what was typed: ids newest first, the rest in
// order.
func (c completions) CompleteResourceArgument(ctx context.Context, uri string, arg mcp.CompleteArgument, known mcp.CompleteContext) (*mcp.Completion, error) {
	rec := recordFrom(ctx)
	var all []string
	var err error
	switch {
	case uri == skillTemplate:
		all, err = c.s.skillVariable(ctx, rec, arg.Name, known.Arguments["name"])
	case strings.HasPrefix(uri, changePrefix) && arg.Name == "id":
		all, err = c.s.changeIDs(ctx, rec)
	default:
		all, err = rec.ids(ctx, uri, arg.Name)
	}
	return c.answer(ctx, rec, all, arg.Value, err), nil
}

// CompletePromptArgument returns what the hint of a skill offers for the word that is being typed, behind the words before
// it.
func (c completions) CompletePromptArgument(ctx context.Context, name string, arg mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	rec := recordFrom(ctx)
	p, err := c.s.prompt(ctx, rec, name)
	if err != nil || p == nil || p.skill == nil || arg.Name != promptArgument {
		return c.answer(ctx, rec, nil, "", err), nil
	}
	before := arg.Value[:strings.LastIndexAny(arg.Value, " \t")+1]
	var all []string
	for _, word := range alternatives(p.skill.Hint, len(strings.Fields(before))) {
		all = append(all, before+word)
	}
	return c.answer(ctx, rec, all, arg.Value, nil), nil
}

// answer is what begins with typed.
func (c completions) answer(ctx context.Context, rec *record, all []string, typed string, err error) *mcp.Completion {
	if err != nil {
		rec.override = c.s.internal(ctx, "completion", err)
	}
	found := &mcp.Completion{Values: []string{}}
	for _, value := range all {
		if !strings.HasPrefix(value, typed) {
			continue
		}
		found.Total++
		if len(found.Values) < maxCompletions {
			found.Values = append(found.Values, value)
		}
	}
	found.HasMore = found.Total > len(found.Values)
	return found
}

// ids are those that a template's variable can have in the caller's session.
func (r *record) ids(ctx context.Context, uri, name string) ([]string, error) {
	if !r.reads() || name != "id" {
		return nil, nil
	}
	var ids []string
	switch {
	case strings.HasPrefix(uri, resultPrefix):
		kept, err := r.state.Results.List()
		for _, k := range kept {
			ids = append(ids, k.ID)
		}
		return ids, err
	case strings.HasPrefix(uri, jobPrefix):
		jobs, err := r.jobs(ctx)
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return ids, err
	}
	return nil, nil
}

// skillVariable is what a variable of the skills' template can be: a name, or a path in the skill that was named.
func (s *Server) skillVariable(ctx context.Context, rec *record, variable, name string) ([]string, error) {
	set, err := s.skills(ctx, rec)
	if err != nil {
		return nil, err
	}
	switch variable {
	case "name":
		var names []string
		for _, k := range set.Skills {
			names = append(names, k.Name)
		}
		return names, nil
	case "path":
		k, ok := set.Find(name)
		if !ok {
			return nil, nil
		}
		return rec.skillFiles(ctx, k)
	}
	return nil, nil
}

// skillFiles are the paths of a skill's files, as a URI has them behind the name.
func (r *record) skillFiles(ctx context.Context, k skills.Skill) ([]string, error) {
	if k.Flat {
		return []string{skillFile}, nil
	}
	files, _, err := r.state.Skills.Files(ctx, r.reach(k), k, maxSkillFiles)
	prefix := skillURI(k.Name, "") + "/"
	for i, f := range files {
		files[i] = strings.TrimPrefix(skillURI(k.Name, f), prefix)
	}
	return files, err
}

// alternatives are the words that a hint such as `[major|minor|patch] <file>` offers for argument n, from 0. An argument
// whose description offers no choice has none.
func alternatives(hint string, n int) []string {
	hint = strings.NewReplacer(" | ", "|", " |", "|", "| ", "|").Replace(results.Line(hint, maxHint))
	for part := range strings.FieldsSeq(hint) {
		if n > 0 {
			n--
			continue
		}
		words := strings.Split(strings.Trim(part, "[]<>(){}."), "|")
		if len(words) < 2 {
			return nil
		}
		var all []string
		for _, w := range words {
			// A word with characters that nobody sees would be sent as what it does not look like.
			if w = strings.Trim(w, "[]<>(){}'\"`"); w != "" && w == results.Clean(w) {
				all = append(all, w)
			}
		}
		return all
	}
	return nil
}
