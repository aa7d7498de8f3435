package tools

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

//go:embed session_config.md
var sessionConfigText string

type sessionConfigInput struct {
	Key   string `json:"key,omitempty" jsonschema:"the option"`
	Value string `json:"value,omitempty" jsonschema:"new value, or default to reset it" rule:"maxlen=4096"`
}

var sessionConfig = tool.Define(tool.Def[sessionConfigInput]{
	Spec: tool.Spec{
		Name: "session_config", Aliases: []string{"Config"}, Title: "Session options", Description: sessionConfigText,
		Hint: "show or change session options, settings, working directory", Deferred: true, MaxRunes: 10_000,
		Scope: tool.ScopeRead, Family: permission.FamilyNone,
		Traits:  tool.Traits{Private: true, Additive: true, Idempotent: true, Local: true},
		Example: `{}`,
		Finds: []string{
			"Config", "config", "session options", "settings", "configure session", "change settings",
			"change working directory", "set cwd", "show session settings",
		},
	},
	Accept:   map[string]string{"setting": "key"},
	Activity: func(sessionConfigInput) string { return "Session options" },
	Check: func(in sessionConfigInput) error {
		if in.Key == "" && in.Value != "" {
			return tool.Invalid("session_config", `"key" is required with "value"`)
		}
		return nil
	},
	Run: runSessionConfig,
})

func runSessionConfig(ctx context.Context, env tool.Env, in sessionConfigInput) (tool.Result, error) {
	chosen, err := env.Choices.Load(ctx)
	cwd := env.Space.Cwd()
	options := sessionConfigOptions(env, chosen, cwd)
	at := slices.IndexFunc(options, func(o session.Option) bool { return o.Key == in.Key })
	switch {
	case err != nil:
		return tool.Result{}, wording.StateFault(ctx, err)
	case in.Key != "" && at < 0:
		return tool.Result{}, sessionConfigRefusal(in.Key, options)
	case in.Key == "":
		var where []string
		if mode, _, err := env.InForce(ctx, time.Now()); err == nil {
			where = []string{env.Situation(mode, false)}
		}
		return tool.Result{Text: sessionConfigLines(env, where, options, "")}, nil
	case in.Value == "":
		return tool.Result{Text: sessionConfigLines(env, nil, options, in.Key)}, nil
	case in.Key == "read_state" && in.Value == "reset":
		n, err := env.Files.ForgetAll(ctx)
		text := wording.Plural(n, "file no longer counts", "files no longer count") +
			" as read. Read a file again before you change it."
		return tool.Result{Text: sessionConfigLines(env, []string{text}, nil, "")}, wording.StateFault(ctx, err)
	case in.Key == "cwd":
		if cwd, err = sessionConfigMove(ctx, env, in.Value); err != nil {
			return tool.Result{}, err
		}
	case in.Key == "read_dedup" && in.Value == "on" && env.Shared:
		err = session.ErrValue
	default:
		chosen, err = env.Choices.Change(ctx,
			func(c session.Choices) (session.Choices, error) { return c.With(env.Usual, in.Key, in.Value) })
	}
	if errors.Is(err, session.ErrValue) || errors.Is(err, session.ErrOption) { // read_state takes no other value
		return tool.Result{},
			tool.Invalid("session_config", fmt.Sprintf(`"value" of %s cannot be %q. It takes: %s`, in.Key,
				wording.Clip(in.Value, 40), options[at].Allowed))
	}
	return tool.Result{Text: sessionConfigLines(env, nil, sessionConfigOptions(env, chosen, cwd), in.Key)},
		wording.StateFault(ctx, err)
}

// sessionConfigOptions are all options with the values in force. Where several conversations share a session, a read is
// never answered with a stub, since the server cannot tell which of them has seen the file.
func sessionConfigOptions(env tool.Env, chosen session.Choices, cwd string) []session.Option {
	allowed := "no directory: the client's roots allow none"
	if roots := env.Space.Roots(); len(roots) > 0 {
		allowed = "a directory in " + strings.Join(roots, ", ")
	}
	options := []session.Option{{Key: "cwd", Value: cwd, Allowed: allowed}}
	for _, o := range chosen.Options(env.Usual) {
		if o.Key == "read_dedup" && env.Shared {
			o.Value, o.Allowed = "off", "off: several conversations share this session"
		}
		options = append(options, o)
	}
	return append(options, session.Option{Key: "read_state", Value: "kept", Allowed: "reset: forget what was read"})
}

// sessionConfigLines shows one option, or all, below other lines, and says whom else that concerns.
func sessionConfigLines(env tool.Env, lines []string, options []session.Option, key string) string {
	for _, o := range options {
		if o.Chosen {
			o.Value += ", chosen in this session"
		}
		if key == "" || key == o.Key {
			lines = append(lines, fmt.Sprintf("%s = %s (%s)", o.Key, strings.ReplaceAll(o.Value, "\n", `\x0a`),
				o.Allowed))
		}
	}
	if env.Shared {
		lines = append(lines, "[all conversations of this user in this workspace share these options]")
	}
	return strings.Join(lines, "\n")
}

// sessionConfigMove makes another directory the current one, and returns it. One that a rule hides does not exist.
func sessionConfigMove(ctx context.Context, env tool.Env, value string) (string, error) {
	to := ""
	if value != "default" {
		absent := tool.Refuse(tool.FileNotFound, "Directory does not exist: %s. %s", value,
			wording.Whereabouts(env, value))
		if env.Rules.Hidden(env.Space.Abs(value)) {
			return "", absent
		}
		place, err := env.Space.Open(value, workspace.Write)
		if err != nil {
			return "", wording.PathRefusal(env, value, err)
		}
		defer place.Dir.Close()
		info, err := place.Dir.Stat(place.Name)
		switch to = place.Path; {
		case errors.Is(err, fs.ErrNotExist) || env.Rules.Hidden(to):
			return "", absent
		case err != nil:
			return "", wording.PathRefusal(env, value, err)
		case !info.IsDir():
			return "", tool.Refuse(tool.NotDirectory, "%s is not a directory. Name its directory.", value)
		}
	}
	_, err := env.Cwd.Change(ctx, func(string) (string, error) { return to, nil })
	return cmp.Or(to, env.Usual.Cwd), wording.StateFault(ctx, err)
}

// sessionConfigRefusal says why there is no such option: it is the operator's, or unknown.
func sessionConfigRefusal(key string, options []session.Option) error {
	var keys []string
	for _, o := range options {
		keys = append(keys, o.Key)
	}
	shown, _ := results.Show(strings.Join(strings.Fields(wording.Clip(key, 100)), " "))
	if session.Fixed(key) {
		return tool.Refuse(tool.ConfigFixed, "%s is set by the operator. A session can set: %s.", shown,
			strings.Join(keys, ", "))
	}
	return tool.Refuse(tool.ConfigUnknown, "There is no option %s. A session can set: %s.", shown,
		strings.Join(keys, ", "))
}
