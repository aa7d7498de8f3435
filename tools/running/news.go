package running

import (
	"cmp"
	"context"
	"slices"

	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/wording"
)

// EndLine says how a job ended, and that the sandbox has something to say of what it did.
func EndLine(i shell.Info) string {
	line := "job " + i.ID + " finished: " + JobSum(i)
	if len(Troubles(i)) > 0 {
		line += "; job_output says which files the user should know of"
	}
	return line
}

// maxNews is how many jobs one result tells of. More than may run at once end only with their server.
const maxNews = 20

// News returns a line for each job of the session whose end no answer has reported yet, in order of their ends, and
// then one for each monitor with new events, at most once a minute. Both are without own, the job that the call is
// about. claim claims the first n lines, and returns those that no other call has claimed meanwhile: the caller must
// report these, and no later News returns them. What is not claimed, for want of room or because the Store does not
// answer, is returned again by a later News.
func News(ctx context.Context, s *session.State, own string) (lines []string, claim func(n int) []string) {
	if s.Shell == nil {
		return nil, nil
	}
	lines, claimEnds := ends(ctx, s, own)
	watched := eventful(ctx, s, own)
	if len(watched) == 0 {
		return lines, claimEnds
	}
	ended := len(lines)
	for _, w := range watched {
		lines = append(lines, w.line)
	}
	return lines, func(n int) (told []string) {
		if claimEnds != nil {
			told = claimEnds(min(n, ended))
		}
		for _, w := range watched[:min(max(n-ended, 0), len(watched))] {
			if s.Shell.Note(w.id, w.events) {
				told = append(told, w.line)
			}
		}
		return told
	}
}

// A watched is a monitor with new events, and the line that tells of them.
type watched struct {
	id, line string
	events   int
}

// eventful returns the monitors with events that the session has neither read nor was told of.
func eventful(ctx context.Context, s *session.State, own string) (list []watched) {
	monitors := s.Shell.Eventful()
	if len(monitors) == 0 {
		return nil
	}
	cursors, err := s.Cursors.Load(ctx)
	if err != nil {
		return nil // a later call tells it
	}
	for _, i := range monitors {
		if n := i.Events - cursors[i.ID].Events; n > 0 && i.ID != own {
			line := "[monitor " + i.ID + ": " + wording.Plural(n, "new event", "new events") + "]"
			list = append(list, watched{id: i.ID, line: line, events: i.Events})
		}
	}
	return list
}

// ends is News of jobs that have ended.
func ends(ctx context.Context, s *session.State, own string) (lines []string, claim func(n int) []string) {
	if !s.Shell.News() {
		return nil, nil
	}
	told, err := s.Cursors.Load(ctx) // before the list: what it has and the list has not is gone for good
	var all []shell.Info
	if err == nil {
		all, err = s.Shell.List(ctx)
	}
	if err != nil {
		s.Shell.Look()
		return nil, nil
	}
	var over []shell.Info
	for _, i := range all {
		switch {
		case i.State == shell.Running || told[i.ID].Announced:
		case i.ID == own:
			s.Shell.Look()
		default:
			over = append(over, i)
		}
	}
	slices.SortFunc(over, func(a, b shell.Info) int {
		return cmp.Or(a.End.Compare(b.End), cmp.Compare(a.ID, b.ID))
	})
	if len(over) > maxNews {
		s.Shell.Look()
		over = over[:maxNews]
	}
	for _, i := range over {
		lines = append(lines, "["+EndLine(i)+"]")
	}
	return lines, func(n int) []string {
		if n < len(over) {
			s.Shell.Look()
		}
		taken, err := announce(ctx, s, over[:n], gone(told, all))
		if err != nil {
			s.Shell.Look()
			return nil
		}
		return taken
	}
}

// gone are the jobs of which the session knows a position and nothing else any more.
func gone(told map[string]session.Cursor, all []shell.Info) []string {
	var ids []string
	for id := range told {
		if !slices.ContainsFunc(all, func(i shell.Info) bool { return i.ID == id }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// announce notes that the session is told of these jobs, and returns the lines of those of which it was not.
func announce(ctx context.Context, s *session.State, over []shell.Info, gone []string) (lines []string, err error) {
	if len(over) == 0 {
		return nil, nil
	}
	_, err = s.Cursors.Change(ctx, func(all map[string]session.Cursor) (map[string]session.Cursor, error) {
		if all == nil {
			all = map[string]session.Cursor{}
		}
		for _, id := range gone {
			delete(all, id)
		}
		lines = nil
		for _, i := range over {
			c := all[i.ID]
			if c.Announced {
				continue
			}
			c.Announced = true
			all[i.ID] = c
			lines = append(lines, "["+EndLine(i)+"]")
		}
		return all, nil
	})
	if err != nil {
		return nil, err
	}
	return lines, nil
}

// Told notes that the session knows how a job ended.
func Told(ctx context.Context, s *session.State, i shell.Info) {
	if _, err := announce(context.WithoutCancel(ctx), s, []shell.Info{i}, nil); err != nil {
		s.Shell.Look() // it is told again
	}
}
