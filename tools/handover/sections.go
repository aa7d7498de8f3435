package handover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"codehand/tools/history"
	"codehand/tools/past"
	"codehand/tools/results"
	"codehand/tools/secrets"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/tasks"
	"codehand/tools/wording"
)

// A section is one part of a Text. Its lines are in the order in which they are worth telling.
type section struct {
	title string
	lines []string
	rest  int    // lines that were not even made
	more  string // what to do to see those that are left out
	share int    // lines that it gets in a round
}

// sections are the parts of the Text, in its order.
func (d *digest) sections(ctx context.Context) []*section {
	return []*section{d.plan(), d.tasks(), d.running(ctx), d.failed(), d.changes(), d.sessions()}
}

// add adds a line, unless there are enough.
func (s *section) add(line string) {
	if len(s.lines) == mostLines {
		s.rest++
		return
	}
	s.lines = append(s.lines, line)
}

// plan is that of the session last used that has one.
func (d *digest) plan() *section {
	s := &section{title: "Plan", share: 3, more: "ask the user for the plan file"}
	for _, r := range d.rows {
		if r.left.plan == "" {
			continue
		}
		state := "in force"
		if r.left.planning {
			state = "not approved yet"
		}
		s.add(fmt.Sprintf("Of %s, %s:", d.named(r.name), state))
		for line := range strings.Lines(r.left.plan) {
			if line = strings.TrimSpace(line); line != "" {
				s.add("- " + d.quoted(line))
			}
		}
		break
	}
	return s
}

// tasks are those that are left, then those that are done.
func (d *digest) tasks() *section {
	s := &section{title: "Tasks", share: 4, more: "give session to see those of one"}
	type task struct{ mark, text, of string }
	ranks := [3][]task{} // in progress, pending, done
	add := func(status, text, of string) {
		switch status {
		case tasks.InProgress:
			ranks[0] = append(ranks[0], task{"[>]", text, of})
		case tasks.Completed:
			ranks[2] = append(ranks[2], task{"[x]", text, of})
		default:
			ranks[1] = append(ranks[1], task{"[ ]", text, of})
		}
	}
	for _, r := range d.rows {
		for _, t := range r.left.todos {
			add(t.Status, t.Content, d.named(r.name))
		}
		for _, t := range r.left.tasks.Tasks {
			of := d.named(r.name)
			if open := r.left.tasks.Blockers(t); len(open) > 0 && t.Status != tasks.Completed {
				of += ", waits for task " + strings.Join(open[:min(len(open), 5)], ", ")
			}
			add(t.Status, "task "+t.ID+": "+t.Subject, of)
		}
	}
	for _, t := range slices.Concat(ranks[0], ranks[1], ranks[2]) {
		if len(s.lines) == mostLines {
			s.rest++
			continue
		}
		s.add("- " + t.mark + " " + d.quoted(t.text) + " (" + t.of + ")")
	}
	return s
}

// running is what runs and waits now.
func (d *digest) running(ctx context.Context) *section {
	s := &section{title: "Runs and waits now", share: 3, more: "job_list has those of this session"}
	told := map[string]bool{}
	add := func(id, text, name string, since time.Time) {
		switch {
		case told[id] || !d.wants(name):
		case len(s.lines) == mostLines:
			s.rest++
		default:
			told[id] = true
			s.add("- " + id + " runs since " + history.Clock(since, d.now) + ": " + d.quoted(text) + " (" +
				d.named(name) + ")")
		}
	}
	if d.env.Shell != nil {
		if jobs, err := d.env.Shell.List(ctx); err == nil { // job_list says what is wrong
			for _, j := range jobs {
				if j.State == shell.Running && j.Background {
					add(j.ID, j.Command, session.OwnerOf(d.env.Key.Session), j.Start)
				}
			}
		}
	}
	if d.records == nil {
		return s
	}
	for _, c := range d.records.Running(ctx, d.who()) {
		if c.Root != "" && d.view.Within(c.Root) {
			add(c.Job, c.Text, c.Session, c.Since)
		}
	}
	for _, w := range d.records.Waiting(d.who()) {
		if d.only == "" || d.only == w.Session {
			s.add(fmt.Sprintf("- %s waits for a person since %s (session %s)", wording.LineOf(w.Tool, 60),
				history.Clock(w.Since, d.now), wording.LineOf(w.Session, 20)))
		}
	}
	return s
}

// A command is what became of one, whenever it ran.
type command struct {
	outcome string // of the newest run that failed; "": the newest one went well
	last    past.Recorded
	failed  int
}

// failed are commands whose newest run failed.
func (d *digest) failed() *section {
	s := &section{title: "Commands that failed when they last ran", share: 3,
		more: "the page (codehand page) has them under Activity"}
	ends := map[string]*int{} // of background commands, by job
	runs := map[string]*command{}
	var order []*command
	passed := 0
	for _, c := range d.calls {
		if c.Command == "" {
			if c.Job != "" && c.Exit != nil && ends[c.Job] == nil {
				ends[c.Job] = c.Exit
			}
			continue
		}
		outcome := outcomeOf(c, ends[c.Job])
		r := runs[c.Command]
		if r == nil {
			r = &command{outcome: outcome, last: c}
			runs[c.Command], order = r, append(order, r)
		}
		if outcome != "" {
			r.failed++
		}
	}
	for _, r := range order {
		switch {
		case r.outcome == "" && r.failed > 0:
			passed++
			continue
		case r.outcome == "":
			continue
		case len(s.lines) == mostLines:
			s.rest++
			continue
		}
		times := ""
		if r.failed > 1 {
			times = fmt.Sprintf(", failed %d times", r.failed)
		}
		s.add(fmt.Sprintf("- %s%s, last %s: %s (%s)", r.outcome, times, history.Clock(r.last.Time, d.now),
			d.quoted(r.last.Command), d.named(r.last.Session)))
	}
	if passed > 0 {
		s.add("- " + wording.Plural(passed, "other command", "other commands") + " failed and went well later")
	}
	return s
}

// outcomeOf says how a command failed; "": it did not, or nobody knows. end is the exit code of a background command
// that another call told; nil: none did.
func outcomeOf(c past.Recorded, end *int) string {
	switch {
	case c.Open:
		return "no end on record"
	case c.Exit != nil && *c.Exit != 0 && c.Code != "":
		return fmt.Sprintf("exit %d", *c.Exit)
	case c.Code != "":
		return wording.LineOf(c.Code, 40)
	case c.Job != "" && end != nil && *end != 0:
		return fmt.Sprintf("exit %d", *end)
	}
	return ""
}

// changes are those in force, the newest first, then those that were taken back.
func (d *digest) changes() *section {
	const most = 3 // files that a line names
	s := &section{title: "Changes, the newest first (undo_change takes an id)", share: 4,
		more: "file_history lists them"}
	for _, undone := range []bool{false, true} {
		for _, e := range d.entries {
			if e.Undone != undone {
				continue
			}
			if len(s.lines) == mostLines {
				s.rest++
				continue
			}
			files := d.view.Files(e)
			for i := range files {
				files[i].Path = secrets.RedactPath(files[i].Path)
			}
			line := "- " + wording.LineOf(history.Brief(d.env, e, files, d.now, most), 2*maxText)
			if e.By.Command != "" {
				line += " while this ran: " + d.quoted(e.By.Command)
			}
			switch {
			case e.Undone:
				line += " [undone]"
			case d.partly[e.ID]:
				line += " [partly undone]"
			case e.Open:
				line += " [not finished]"
			case e.Unsure:
				line += " [stopped half way]"
			}
			s.add(line + " (" + d.named(session.OwnerOf(e.By.Session)) + ")")
		}
	}
	return s
}

// sessions are the sessions themselves.
func (d *digest) sessions() *section {
	s := &section{title: "Sessions, the one last used first", share: 2,
		more: "give session to see one; the page (codehand page) lists all"}
	for _, r := range d.rows {
		line := "- " + strings.ToUpper(d.named(r.name)[:1]) + d.named(r.name)[1:]
		if r.client != "" {
			line += " " + d.quoted(r.client)
		}
		line += ", " + history.Clock(r.first, d.now) + " to " + history.Clock(r.last, d.now) + ": "
		if d.off() == "" {
			line += wording.Plural(r.calls, "call", "calls") + ", "
		}
		s.add(line + wording.Plural(r.changes, "change", "changes"))
	}
	return s
}

// fit joins the sections within MaxTokens and form: each gets its share of lines in turn until there is no room, so
// that none is empty because another one is long.
func fit(head string, all []*section, form results.Form) string {
	taken := make([]int, len(all))
	for grown := true; grown; {
		grown = false
		for i, s := range all {
			for range s.share {
				if taken[i] == len(s.lines) {
					break
				}
				taken[i]++
				if text := joined(head, all, taken); results.Tokens(text) > MaxTokens || !form.Fits(text) {
					taken[i]--
					break
				}
				grown = true
			}
		}
	}
	return joined(head, all, taken)
}

// joined is the text with so many lines of each section. A section of which nothing is taken is a line that counts it.
func joined(head string, all []*section, taken []int) string {
	var b strings.Builder
	b.WriteString(head)
	empty := true
	for i, s := range all {
		left := len(s.lines) - taken[i] + s.rest
		if len(s.lines) == 0 {
			continue
		}
		empty = false
		b.WriteString("\n## " + s.title + "\n\n")
		for _, line := range s.lines[:taken[i]] {
			b.WriteString(line + "\n")
		}
		if left > 0 {
			fmt.Fprintf(&b, "- %s more: %s\n", results.Count(left), s.more)
		}
	}
	if empty {
		b.WriteString("\nNothing is on record yet.\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
