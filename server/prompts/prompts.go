package prompts

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // commit.md
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/resources"
	"codehand/tools/guidance"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/skills"
)

const (
	// commitPrompt is the prompt that every session has.
	commitPrompt = "commit"
	// projectPrompt is another one: the instructions of the workspace.
	projectPrompt = "instructions"
	// promptArgument is the only argument of a prompt.
	promptArgument = "arguments"
)

// commitText is the workflow of the prompt commit.
//
//go:embed commit.md
var commitText string

// A Prompt is one that a session has.
type Prompt struct {
	MCP   mcp.Prompt
	skill *skills.Skill // nil: one of our own
}

// A Library makes the prompts of sessions. It is safe for concurrent use.
type Library struct {
	Resources *resources.Library // where skills are found
	CoAuthor  string             // named in commit messages; "": none
}

// Commit is the prompt commit, where no skill has this name.
var Commit = mcp.NewPrompt(commitPrompt,
	mcp.WithPromptDescription("Make one git commit: look at what changed, write the message, commit."),
	mcp.WithArgument(promptArgument, mcp.ArgumentDescription("What to consider, such as the reason for the change.")))

// project is the prompt of the workspace's instructions, where no skill has this name.
var project = mcp.NewPrompt(projectPrompt, mcp.WithPromptDescription(
	"Read what AGENTS.md and other files of the workspace ask of those who work in it."))

// noProject is its text where there are none.
const noProject = "This workspace has no instructions that you may read: neither " + guidance.Agents + ", " +
	guidance.Claude + ", " + guidance.Gemini + ", " + guidance.Cursor + " nor " + guidance.Copilot + ".\n"

// List returns those of the caller's session, by name: our own, and the skills that a person may run.
func (l *Library) List(ctx context.Context, v resources.View) ([]Prompt, error) {
	set, err := l.Resources.Skills(ctx, v)
	if err != nil {
		return nil, err
	}
	all := []Prompt{{MCP: Commit}, {MCP: project}}
	for _, k := range set.Skills {
		if k.UserOff {
			continue
		}
		hint := "Free text."
		if k.Hint != "" {
			hint = results.Line(results.Clean(k.Hint), skills.MaxLine)
		}
		p := Prompt{skill: &k, MCP: mcp.NewPrompt(k.Name,
			mcp.WithPromptDescription(results.Line(results.Clean(k.Description), skills.MaxLine)),
			mcp.WithArgument(promptArgument, mcp.ArgumentDescription(hint)))}
		own := func(o Prompt) bool { return o.MCP.Name == k.Name }
		if i := slices.IndexFunc(all[:2], own); i >= 0 {
			all[i] = p
			continue
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Prompt) int { return strings.Compare(a.MCP.Name, b.MCP.Name) })
	return all, nil
}

// Find finds one of them; nil: there is none of this name.
func (l *Library) Find(ctx context.Context, v resources.View, name string) (*Prompt, error) {
	all, err := l.List(ctx, v)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.MCP.Name == name {
			return &p, nil
		}
	}
	return nil, nil
}

// An ArgumentError is what a client can repair.
type ArgumentError struct{ text string }

// Error is for the client.
func (e *ArgumentError) Error() string { return e.text }

// Text is what p says with these arguments. The error is an *ArgumentError, or a fault of ours.
func (l *Library) Text(ctx context.Context, v resources.View, p *Prompt, arguments map[string]string) (string, error) {
	own := p.skill == nil && p.MCP.Name == projectPrompt
	for name := range arguments {
		if own {
			return "", &ArgumentError{"the prompt " + projectPrompt + " has no arguments"}
		}
		if name != promptArgument {
			return "", &ArgumentError{fmt.Sprintf("the prompt %s has no argument %q; there is %s", p.MCP.Name,
				results.Line(name, 80), promptArgument)}
		}
	}
	given := arguments[promptArgument]
	if n := utf8.RuneCountInString(given); n > skills.MaxArguments {
		return "", &ArgumentError{fmt.Sprintf("%s has %d characters; %d are possible", promptArgument, n,
			skills.MaxArguments)}
	}
	if own {
		text, err := guidance.Text(ctx, v.State)
		return cmp.Or(text, noProject), err
	}
	if p.skill == nil {
		return l.commit(given), nil
	}
	return skillText(ctx, v.State, *p.skill, given)
}

// commit is the text of the prompt commit.
func (l *Library) commit(given string) string {
	text := commitText
	if author := l.CoAuthor; author != "" {
		text += "\nEnd the message with an empty line and this one: `Co-authored-by: " + author + "`.\n"
	} else {
		text += "\nAdd no co-author.\n"
	}
	if given = strings.TrimSpace(given); given != "" {
		text += "\nThe user says: " + given + "\n"
	}
	return text
}

// skillText is the text of a skill as the tool skill renders it, but for its commands: there is no permission decision
// here, so none is run.
func skillText(ctx context.Context, st *session.State, k skills.Skill, given string) (string, error) {
	gone := &ArgumentError{fmt.Sprintf("the skill %s cannot be read", k.Name)}
	body, err := st.Skills.Body(ctx, st.Visible(), k)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", gone
	}
	given = strings.ReplaceAll(given, "\r\n", "\n") // of a client's form, where a return is nothing hidden
	parts, err := skills.Render(k, body, skills.Arguments{Text: given, Project: st.ProjectDir(),
		Session: st.Key.Session})
	if err != nil {
		return "", &ArgumentError{fmt.Sprintf("the text of the skill %s is too large with these arguments", k.Name)}
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

// Digest is a digest of a list of prompts.
func Digest(all []Prompt) string {
	sum := sha256.New()
	for _, p := range all {
		fmt.Fprintf(sum, "%q %q", p.MCP.Name, p.MCP.Description)
		for _, a := range p.MCP.Arguments {
			fmt.Fprintf(sum, " %q", a.Description)
		}
	}
	return string(sum.Sum(nil))
}
