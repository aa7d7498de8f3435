package running

import (
	"context"
	"os"
	"time"

	"codehand/tools/confine"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// A Script is shell text of our own that does a part of a call which has been allowed, or looks at what it would do.
type Script struct {
	Text    string
	Dir     *os.Root // where it runs; the caller closes it
	Open    []string // directories that it may write besides the roots (confine.Use.Open)
	Allowed []string // protected names that it may change (confine.Use.Allowed)

	ReadOnly bool // it changes nothing and reaches nothing, so it needs no permission
}

// maxScript is how many bytes of each stream a Script's caller gets.
const maxScript = 1 << 20

// scriptTime is how long a Script may run.
const scriptTime = 5 * time.Minute

// Run runs a Script as a command of the session is run, and returns what it printed. An error is a refusal, or a fault;
// an exit code is none.
func (s Script) Run(ctx context.Context, env tool.Env) (stdout, stderr string, exit int, err error) {
	confined, err := confineAs(ctx, env, confine.Use{Roots: rootsOf(env), Rules: env.Rules, ReadOnly: s.ReadOnly,
		Allowed: s.Allowed, Open: s.Open, Repositories: env.Repositories()})
	if err != nil {
		return "", "", 0, err
	}
	job, err := env.Shell.Start(ctx, shell.Command{Text: s.Text, Dir: s.Dir, Timeout: scriptTime,
		Profile: confined.Profile, Level: confined.Level, Groups: confined.Groups, Spares: confined.Spares,
		Env: confined.Env, Hold: confined.Hold, Over: confined.Over})
	if err != nil {
		confined.Drop()
		return "", "", 0, wording.StartRefusal(err)
	}
	defer job.Release()
	info, err := job.Wait(ctx, time.Time{})
	if err != nil {
		return "", "", 0, err
	}
	out, errs, err := env.Shell.Streams(ctx, info.ID, maxScript)
	if err != nil {
		return "", "", 0, err
	}
	if info.Exit == 0 && info.State != shell.Completed {
		info.Exit = -1
	}
	return out.Head + out.Tail, errs.Head + errs.Tail, info.Exit, nil
}
