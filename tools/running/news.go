package running

import (
	"cmp"
	"context"
	"slices"

	"codehand/tools/session"
	"codehand/tools/shell"
)

// EndLine says how a job ended.
func EndLine(i shell.Info) string { return "job " + i.ID + " finished: " + JobSum(i) }

// maxNews is how many jobs one result tells of. More than may run at once end only with their server.
const maxNews = 20

// News returns a line for each job of the session whose end no answer has reported yet, in order of their ends, without
// own, the job that the call is about. claim claims the first n of them, and returns the lines of those that no other
// call has claimed meanwhile: the caller must report these, and no later News returns them. Ends that are not claimed,
// for want of room or because the Store does not answer, are returned again by a later News.
func News(ctx context.Context, s *session.State, own string) (lines []string, claim func(n int) []string) {
	if s.Shell == nil || !s.Shell.News() {
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
