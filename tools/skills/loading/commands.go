package loading

import (
	"context"
	"errors"
	"strings"
	"time"

	"codehand/tools/permission"
	"codehand/tools/running"
	"codehand/tools/skills"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

const (
	loanLife = 10 * time.Minute // how long the rules that a skill brings hold
	badRules = 5                // rules that are not used, in one note
)

// loan is what the skill lends. That of a project lends nothing: the author of a repository may not allow anything.
func (l *Load) loan() *tool.Loan {
	loan := &tool.Loan{Skill: l.Skill.Name, Life: loanLife}
	switch {
	case len(l.Skill.Allowed) == 0:
		return loan
	case l.Skill.Trust == skills.Project:
		l.notes = append(l.notes, "[allowed-tools of a project's skill are ignored]")
		return loan
	case l.Env.Prefs.ManagedRules:
		l.notes = append(l.notes,
			"[allowed-tools are ignored: only the machine's administrator may add rules that allow]")
		return loan
	case l.Env.Shared:
		l.notes = append(l.notes, "[allowed-tools are ignored: several conversations share this session]")
		return loan
	}
	var bad []string
	over := 0
	for _, rule := range l.Skill.Allowed {
		switch {
		case permission.Grantable(rule) != nil:
			bad = append(bad, wording.LineOf(rule, 100))
		case len(loan.Rules) < permission.MaxLoans:
			loan.Rules = append(loan.Rules, rule)
		default:
			over++
		}
	}
	if len(bad) > 0 {
		l.notes = append(l.notes, "[allowed-tools that are not used: "+strings.Join(bad[:min(len(bad), badRules)],
			", ")+"]")
	}
	if over > 0 {
		l.notes = append(l.notes, "[of allowed-tools the first "+wording.Plural(len(loan.Rules), "rule counts",
			"rules count")+", "+wording.Plural(over, "is", "are")+" left out]")
	}
	return loan
}

// commands runs the commands of the text; nil: none is run.
func (l *Load) commands(ctx context.Context, loan *tool.Loan) func(string) (string, error) {
	if !l.Env.Prefs.SkillShell || l.Skill.Trust == skills.Project || l.Env.Call == nil {
		return nil
	}
	switch l.Skill.Shell {
	case "", "bash", "sh":
	default:
		return nil // it is written for another one
	}
	return func(command string) (string, error) {
		res, err := l.Env.Call(ctx, "run_shell", wording.Data(commandInput{command}), loan)
		if err != nil {
			return "", l.denied(command, err)
		}
		l.ran++
		if res.Text == running.NoOutput {
			return "", nil
		}
		return res.Text, nil // also of one that failed: it says so
	}
}

// A commandInput is the input of run_shell.
type commandInput struct {
	Command string `json:"command"`
}

// denied is the refusal for a skill of which a command was refused.
func (l *Load) denied(command string, err error) error {
	r, refused := errors.AsType[*tool.Refusal](err)
	if !refused || r.Code == tool.Interrupted {
		return err
	}
	before := ""
	if l.ran > 0 {
		before = " " + wording.Plural(l.ran, "command before it has run.", "commands before it have run.")
	}
	first, _, _ := strings.Cut(r.Error(), "\n")
	return &tool.Refusal{
		Code: tool.SkillDenied, Cause: err,
		Text: "The skill " + l.Skill.Name + " was not loaded: its command `" + wording.LineOf(command, 150) +
			"` was refused: " + wording.Clip(first, 250) + before + " Tell the user.",
	}
}
