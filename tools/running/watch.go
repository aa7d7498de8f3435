package running

import (
	"context"
	"time"

	"codehand/tools/results"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

const (
	// lookEvery is how often a command is looked at while a call waits: its client is told at most twice a second.
	lookEvery = 500 * time.Millisecond
	// tellEvery is how often the client is told when nothing new was printed, so that it sees the time go by.
	tellEvery = time.Second
	// quietAfter is how long a command may print nothing before a note says so.
	quietAfter = 2 * time.Second
	// maxLastLine is how many characters of one stream's last line a note shows: both fit into it.
	maxLastLine = 80
)

// A watch tells the client what a command prints, while a call waits for it. It belongs to one goroutine.
type watch struct {
	progress tool.Progress
	last     func() (out, err string)
	lines    string    // the last ones that were seen
	since    time.Time // when they were first seen
	told     time.Time
}

// newWatch begins to watch a command. last returns the last line of each of its streams.
func newWatch(env tool.Env, last func() (out, err string)) *watch {
	now := time.Now()
	return &watch{progress: env.Progress, last: last, since: now, told: now}
}

// look tells what is new, or from time to time that there is nothing.
func (w *watch) look(i shell.Info, now time.Time) {
	lines := lastLines(w.last())
	if lines != w.lines {
		w.lines, w.since = lines, now
	} else if now.Sub(w.told) < tellEvery {
		return
	}
	w.told = now
	ran := now.Sub(i.Start)
	text := wording.Whole(ran)
	quiet := now.Sub(w.since)
	switch {
	case lines == "":
		text += ", no output yet"
	case quiet >= quietAfter:
		text += ", no output for " + wording.Whole(quiet) + ": " + lines
	default:
		text += ": " + lines
	}
	w.note(ran, text)
}

// end tells how the command ended and what it printed last, so that the client has seen all that there was to see.
func (w *watch) end(i shell.Info) {
	ran := i.Ran()
	text := i.How() + ", " + wording.Whole(ran)
	if lines := lastLines(w.last()); lines != "" {
		text += ": " + lines
	} else if i.Out+i.Err == 0 {
		text += ", no output"
	}
	w.note(ran, text)
}

func (w *watch) note(ran time.Duration, text string) {
	w.progress(ran.Round(time.Second).Seconds(), 0, text)
}

// lastLines shows the last line of each stream as one.
func lastLines(out, err string) string {
	out, err = shownLine(out), shownLine(err)
	switch {
	case err == "":
		return out
	case out == "":
		return "stderr: " + err
	}
	return out + " | stderr: " + err
}

func shownLine(line string) string { return wording.LineOf(results.Clean(line), maxLastLine) }

// Await returns when a job has ended, when a monitor has events behind position after, when what is waited for is there
// (nil: nothing else is), or at until, and tells the client meanwhile what it prints. Errors are those of Shell.Await.
func Await(ctx context.Context, env tool.Env, id string, after int64, there func() bool, until time.Time) (shell.Info,
	error) {
	w := newWatch(env, func() (out, err string) { return env.Shell.Last(id) })
	if there != nil && there() {
		return env.Shell.Await(ctx, id, time.Now())
	}
	for {
		step := time.Now().Add(lookEvery)
		last := !step.Before(until)
		if last {
			step = until
		}
		info, err := env.Shell.AwaitNew(ctx, id, after, step)
		if err != nil || last || info.State != shell.Running || info.Monitor && time.Now().Before(step) {
			return info, err
		}
		if there != nil && there() {
			return info, nil
		}
		w.look(info, time.Now())
	}
}
