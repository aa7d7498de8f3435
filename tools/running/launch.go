package running

import (
	"context"
	"errors"

	"codehand/tools/bash"
	"codehand/tools/git/changes"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// Launch starts a command that has been allowed, in the session's directory, confined as its rules say. c has the text,
// the limits and whether it is a job; the rest is filled in. What it may discard is kept before, and unless it is a job
// the changes that it makes are followed: then the caller drops Outcome.Watch. An error is a refusal, or a fault.
func Launch(ctx context.Context, env tool.Env, trees *changes.Trees, c shell.Command) (*shell.Job, Outcome, error) {
	var o Outcome
	if err := StillReads(env, c.Text); err != nil {
		return nil, o, err
	}
	reads := env.Analysis.Class == bash.ReadOnly
	var asked *asker
	if !c.Background { // a job has nobody who waits for it
		asked = newAsker(ctx, env)
	}
	confined, err := Confine(ctx, env, reads, c.Background, asked.asking())
	if err != nil {
		return nil, o, err
	}
	dir, notes, err := Dir(env)
	if err != nil {
		confined.Drop()
		return nil, o, err
	}
	defer func() { _ = dir.Close() }() // only a place to start from
	held, err := keepDiscarded(ctx, env, trees, c.Text, c.Background)
	if err != nil {
		confined.Drop()
		return nil, o, err
	}
	o = Outcome{Env: env, Confined: confined, Limit: c.Timeout, Notes: notes, asked: asked,
		last: confinedNote(ctx, env, confined.Level)}
	if !c.Background { // what a job does is not told when it starts
		o.Watch = newFileWatch(ctx, env, trees, held)
	}
	c.Dir, c.Neutral = dir, reads && !env.Analysis.Held
	c.Profile, c.Level, c.Groups, c.Spares = confined.Profile, confined.Level, confined.Groups, confined.Spares
	c.Env, c.Serve, c.Hold, c.Over = confined.Env, confined.Serve, confined.Hold, confined.Over
	job, err := env.Shell.Start(ctx, c)
	if err != nil {
		o.Watch.Drop()
		held.Drop()
		confined.Drop()
	}
	switch {
	case errors.Is(err, shell.ErrJobLimit):
		err = tool.Refuse(tool.JobLimit, "Too many jobs run at once. Stop one with job_stop: %s.", JobNames(ctx, env))
	case err != nil:
		err = wording.StartRefusal(err)
	case c.Background:
		o.Notes = append(o.Notes, keptNotes(held)...)
	}
	return job, o, err
}
