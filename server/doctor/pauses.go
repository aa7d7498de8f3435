package doctor

import (
	"context"
	"time"

	"codehand/server/auth"
	"codehand/server/pauses"
	"codehand/server/state"
)

// pausedHere says that this user has paused the calls of sessions on stdio: to clients that looks like a fault.
func pausedHere(stateDir string) (found []Finding) {
	for _, p := range pauses.Dir(stateDir).Of(auth.LocalID, false) {
		found = append(found, pausedFinding("pause", p, "no call of a session on stdio runs",
			"resume them on the page that codehand page opens"))
	}
	return found
}

// pausedIn says whose calls are paused in a Store of serve.
func pausedIn(ctx context.Context, id string, s state.Store) ([]Finding, error) {
	all, err := pauses.In(ctx, s)
	var found []Finding
	for _, p := range all {
		whose := "no call runs"
		if p.Of != "" {
			whose = "no call of " + p.Of + " runs"
		}
		found = append(found, pausedFinding(id, p, whose+" in codehand serve",
			"resume them on the page of codehand serve"))
	}
	return found, err
}

func pausedFinding(id string, p pauses.Pause, what, fix string) Finding {
	text := "Pause everything is on"
	if !p.Since.IsZero() {
		text += " since " + p.Since.UTC().Format(time.DateTime) + " UTC"
	}
	if p.By != "" {
		text += ", by " + p.By
	}
	return Finding{id, Warn, text + ": " + what, fix}
}
