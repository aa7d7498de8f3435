package loading

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"strings"

	"codehand/tools/skills"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// remembered is of how many skills a session remembers what it was shown.
const remembered = 200

// A Load makes the answer that one skill is. It is for one call.
type Load struct {
	Env   tool.Env
	Skill skills.Skill
	notes []string // the last lines of the answer
	ran   int      // commands
}

// Run is the answer to a call that loads the skill with args, and the rules that it lends. It runs the commands of the
// text, so a call may have done something although the error, a refusal, says that the skill was not loaded.
func (l *Load) Run(ctx context.Context, args string) (tool.Result, error) {
	env, k := l.Env, l.Skill
	body, err := env.Skills.Body(ctx, env.Visible(), k)
	if err != nil {
		return tool.Result{}, l.refusal(err)
	}
	rendering, err := skills.Render(k, body, skills.Arguments{Text: args, Project: env.ProjectDir(),
		Session: env.Key.Session})
	if err != nil {
		return tool.Result{}, l.refusal(err)
	}
	loan := l.loan()
	text, err := rendering.Text(l.commands(ctx, loan))
	if err != nil {
		return tool.Result{}, l.refusal(err)
	}
	head, _, err := env.Skills.Head(ctx, env.Visible(), k)
	if err != nil {
		return tool.Result{}, l.refusal(err)
	}
	if text = head + text; l.again(ctx, text) {
		return tool.Result{Text: "Already loaded above. Call again to load it anyway.", Lends: loan}, nil
	}
	if len(l.notes) > 0 {
		text = strings.TrimRight(text, "\n") + "\n" + strings.Join(l.notes, "\n")
	}
	return tool.Result{Text: text, Lends: loan}, nil
}

// again says whether exactly this was the last that the session was shown of the skill. It forgets that then, since the
// conversation may have forgotten the text. Several conversations that share a session have not seen the same.
func (l *Load) again(ctx context.Context, text string) bool {
	if l.Env.Shared {
		return false
	}
	digest := sha256.Sum256([]byte(text))
	sum := hex.EncodeToString(digest[:])
	var again bool
	_, err := l.Env.Told.Change(ctx, func(shown map[string]string) (map[string]string, error) {
		shown = maps.Clone(shown)
		switch again = shown[l.Skill.Name] == sum; {
		case again:
			delete(shown, l.Skill.Name)
			return shown, nil
		case shown == nil, len(shown) >= remembered:
			shown = map[string]string{}
		}
		shown[l.Skill.Name] = sum
		return shown, nil
	})
	return again && err == nil
}

// refusal puts into words why there is no text.
func (l *Load) refusal(err error) error {
	k := l.Skill
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tool.Refuse(tool.SkillUnknown, "Unknown skill: %s. It was removed just now.", k.Name)
	case errors.Is(err, skills.ErrTooLarge), errors.Is(err, skills.ErrTooMany):
		return tool.Refuse(tool.TooLarge, "The skill %s cannot be loaded: %v. Tell the user.", k.Name, err)
	case errors.Is(err, skills.ErrNotText):
		return tool.Refuse(tool.EncodingUnsupported,
			"The skill %s cannot be loaded: %s is not UTF-8 text. Tell the user.", k.Name, k.File)
	case errors.Is(err, skills.ErrUnsafe):
		return tool.Invalid("skill",
			`a command of the skill could run "args" as code; use only letters, digits, spaces and _./:@%+,=-`)
	case errors.Is(err, skills.ErrPlace):
		return tool.Refuse(tool.SkillDenied,
			"The skill %s was not loaded: one of its commands uses its directory or the project's (%s, %s), and a "+
				"shell could take that name for code. Tell the user.",
			k.Name, wording.LineOf(k.Dir, 200), wording.LineOf(l.Env.ProjectDir(), 200))
	}
	return wording.PathRefusal(l.Env, k.File, err)
}
