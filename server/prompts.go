package server

import (
	"context"
	_ "embed" // commit.md
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/tools/results"
	"codehand/tools/skills"
)

const (
	// commitPrompt is the prompt that everybody has. It is also the only one that mcp-go knows: its table is one for all
	// sessions, so the name of any other becomes this one on the way to the handler.
	commitPrompt = "commit"
	// promptArgument is the only argument of a prompt.
	promptArgument = "arguments"
)

// commitText is the workflow of the prompt commit.
//
//go:embed commit.md
var commitText string

// A promptCall is a prompt that was found for a request.
type promptCall struct {
	prompt mcp.Prompt
	skill  *skills.Skill // nil: the prompt commit of our own
}

// offerPrompts gives mcp-go the one prompt that it knows.
func (s *Server) offerPrompts() { s.mcp.AddPrompt(ownCommit, s.getPrompt) }

// ownCommit is the prompt commit, where no skill has this name.
var ownCommit = mcp.NewPrompt(commitPrompt,
	mcp.WithPromptDescription("Make one git commit: look at what changed, write the message, commit."),
	mcp.WithArgument(promptArgument, mcp.ArgumentDescription("What to mind, such as the reason of the change.")))

// prompts are those of the caller's session, by name: commit, and the skills that a person may run.
func (s *Server) prompts(ctx context.Context, rec *record) ([]promptCall, error) {
	set, err := s.skills(ctx, rec)
	if err != nil {
		return nil, err
	}
	all := []promptCall{{prompt: ownCommit}}
	for _, k := range set.Skills {
		if k.UserOff {
			continue
		}
		hint := "Free text."
		if k.Hint != "" {
			hint = results.Line(results.Clean(k.Hint), skills.MaxLine)
		}
		p := promptCall{skill: &k, prompt: mcp.NewPrompt(k.Name,
			mcp.WithPromptDescription(results.Line(results.Clean(k.Description), skills.MaxLine)),
			mcp.WithArgument(promptArgument, mcp.ArgumentDescription(hint)))}
		if k.Name == commitPrompt {
			all[0] = p
			continue
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b promptCall) int { return strings.Compare(a.prompt.Name, b.prompt.Name) })
	return all, nil
}

// prompt finds one of them; nil: there is none of this name.
func (s *Server) prompt(ctx context.Context, rec *record, name string) (*promptCall, error) {
	all, err := s.prompts(ctx, rec)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.prompt.Name == name {
			return &p, nil
		}
	}
	return nil, nil
}

// listPrompts replaces what mcp-go would list by what the caller's session has.
func (s *Server) listPrompts(ctx context.Context, _ any, _ *mcp.ListPromptsRequest, result *mcp.ListPromptsResult) {
	rec := recordFrom(ctx)
	ours, err := s.prompts(ctx, rec)
	if err != nil {
		rec.override = s.internal(ctx, "prompts", err)
		return
	}
	list := make([]mcp.Prompt, 0, len(ours))
	for _, p := range ours {
		list = append(list, p.prompt)
	}
	rec.prompts.set(rec.state.Key, digestPrompts(ours))
	for _, p := range result.Prompts {
		if !slices.ContainsFunc(list, func(own mcp.Prompt) bool { return own.Name == p.Name }) { // of Extend
			list = append(list, p)
		}
	}
	result.Prompts = list
}

// findPrompt finds the prompt that a request names, and lets mcp-go find its handler. What the session does not have keeps
// its name, for which mcp-go has no handler. It runs after mcp-go has compared the name with that in the headers (v1.2.1,
// server/request_handler.go:104).
func (s *Server) findPrompt(ctx context.Context, _ any, req *mcp.GetPromptRequest) {
	rec := recordFrom(ctx)
	p, err := s.prompt(ctx, rec, req.Params.Name)
	switch {
	case err != nil:
		rec.override = s.internal(ctx, "prompts", err)
	case p != nil:
		rec.prompt = p
		req.Params.Name = commitPrompt
	}
}

// getPrompt is the handler of all prompts.
func (s *Server) getPrompt(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	rec := recordFrom(ctx)
	if rec.prompt == nil {
		return &mcp.GetPromptResult{}, nil // the override says why
	}
	text, err := s.promptText(ctx, rec, req.Params.Arguments)
	if bad, ok := errors.AsType[*promptError](err); ok {
		rec.override = &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: bad.text}
	} else if err != nil {
		rec.override = s.internal(ctx, "prompt", err)
	}
	return &mcp.GetPromptResult{
		Description: rec.prompt.prompt.Description,
		Messages:    []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)}},
	}, nil
}

// A promptError is what a client can repair.
type promptError struct{ text string }

func (e *promptError) Error() string { return e.text }

// promptText is what a prompt says with these arguments.
func (s *Server) promptText(ctx context.Context, rec *record, arguments map[string]string) (string, error) {
	for name := range arguments {
		if name != promptArgument {
			return "", &promptError{fmt.Sprintf("the prompt %s has no argument %q; there is %s", rec.prompt.prompt.Name, results.Line(name, 80), promptArgument)}
		}
	}
	given := arguments[promptArgument]
	if n := utf8.RuneCountInString(given); n > skills.MaxArguments {
		return "", &promptError{fmt.Sprintf("%s has %d characters; %d are possible", promptArgument, n, skills.MaxArguments)}
	}
	if rec.prompt.skill == nil {
		return s.commit(given), nil
	}
	return rec.skillPrompt(ctx, *rec.prompt.skill, given)
}

// commit is the text of the prompt commit.
func (s *Server) commit(given string) string {
	text := commitText
	if author := s.cfg.Git.CoAuthor; author != "" {
		text += "\nEnd the message with an empty line and this one: `Co-authored-by: " + author + "`.\n"
	} else {
		text += "\nAdd no co-author.\n"
	}
	if given = strings.TrimSpace(given); given != "" {
		text += "\nThe user says: " + given + "\n"
	}
	return text
}

// skillPrompt is the text of a skill as the tool skill renders it, but for its commands: nobody decides about those here,
// so none is run.
func (r *record) skillPrompt(ctx context.Context, k skills.Skill, given string) (string, error) {
	st := r.state
	gone := &promptError{fmt.Sprintf("the skill %s cannot be read", k.Name)}
	body, err := st.Skills.Body(ctx, st.Visible(), k)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", gone
	}
	given = strings.ReplaceAll(given, "\r\n", "\n") // of a client's form, where a return is nothing hidden
	parts, err := skills.Render(k, body, skills.Arguments{Text: given, Project: st.ProjectDir(), Session: st.Key.Session})
	if err != nil {
		return "", &promptError{fmt.Sprintf("the text of the skill %s is too large with these arguments", k.Name)}
	}
	text, err := parts.Text(nil)
	if err != nil {
		return "", gone
	}
	head, beside, err := st.Skills.Head(ctx, st.Visible(), k)
	if err != nil {
		return "", err
	}
	if beside { // else the text speaks of no other files
		text = head + text
	}
	text, _ = results.Show(text) // as the tool skill: the reader is a model that sees more than the person does
	return text, nil
}
