package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/server/clients/install"
	"codehand/server/clients/install/forms"
	"codehand/server/config"
)

// A planner plans the change of one client.
type planner func(client string, want install.Want) (*install.Change, error)

// plan is the planner of install. With --all a directory is only for clients that have no project of their own.
func (i *installer) plan(client string, want install.Want) (*install.Change, error) {
	if i.flags.all && !install.TakesRoots(client) {
		want.Roots = nil
	}
	if !slices.Contains(i.clients, "claude-code") && want.Exclusive && !i.flags.all {
		return nil, usage("codehand install claude-code --exclusive", "%s %v", client, install.ErrExclusive)
	}
	want.Exclusive = want.Exclusive && client == "claude-code"
	return install.Plan(i.places, client, want)
}

// run plans all clients before it writes to the first, so that what is wrong with the command line leaves all as it is.
// A file that cannot be changed does not keep the others from it.
func (i *installer) run(plan planner) error {
	if i.flags.all {
		if i.clients = i.everyClient(); len(i.clients) == 0 {
			why := "no client was found on this machine"
			if i.removes {
				why = "no client's file names codehand; nothing to do"
			}
			fmt.Fprintln(i.t.errs, "codehand: "+why)
			return nil
		}
	}
	if !i.flags.dryRun && !i.flags.yes && i.asks == nil {
		return usage("codehand "+i.cmd.Name()+" --help",
			"without a terminal you cannot be asked: agree with --yes, or look with --dry-run")
	}
	for _, c := range install.Look(i.places) {
		if c.Present {
			i.present = append(i.present, c.Client)
		}
	}
	var changes []*install.Change
	var wrong error
	for _, client := range i.clients {
		c, err := i.decided(client, plan)
		exit, ok := errors.AsType[*exitError](err)
		switch {
		case ok && exit.code == exitUsage:
			return err
		case err != nil:
			wrong = i.refused(client, err)
		case c != nil:
			changes = append(changes, c)
		}
	}
	for _, c := range changes {
		if err := i.make(c, plan); err != nil {
			if exit, ok := errors.AsType[*exitError](err); ok && exit.code == exitUsage {
				return err
			}
			wrong = i.refused(c.Client, err)
		}
	}
	return wrong
}

// everyClient are those that --all is about.
func (i *installer) everyClient() []string {
	var all []string
	for _, c := range install.Look(i.places) {
		about := c.Present && !c.Project
		if i.removes {
			about = c.Entry != nil && c.Entry.Ours() && c.Project == i.flags.project ||
				install.Exclusive(i.places, c.Client, i.flags.project) != ""
		}
		if about && !slices.Contains(all, c.Client) {
			all = append(all, c.Client)
		}
	}
	return all
}

// decided plans the change of a client, and lets a person decide what the plan leaves open. nil: the client is left
// out, which was said.
func (i *installer) decided(client string, plan planner) (*install.Change, error) {
	want := i.want
	for {
		c, err := plan(client, want)
		foreign, isForeign := errors.AsType[*install.ForeignError](err)
		switch {
		case errors.Is(err, install.ErrRootNeeded) && i.asks != nil:
			if want.Roots, err = i.askRoots(client); err != nil {
				return nil, err
			}
			if want.Roots == nil {
				fmt.Fprintf(i.t.errs, "codehand: left out: %s\n", client)
				return nil, nil
			}
		case (errors.Is(err, install.ErrRootNeeded) || errors.Is(err, install.ErrNoProject)) && i.flags.all:
			fmt.Fprintf(i.t.errs, "codehand: left out: %v\n", err)
			return nil, nil
		case errors.Is(err, install.ErrRootNeeded):
			return nil, usage("codehand install "+client+" DIRECTORY", "%v", err)
		case errors.Is(err, install.ErrNoProject), errors.Is(err, install.ErrExclusive):
			return nil, usage("codehand "+i.cmd.Name()+" --help", "%v", err)
		case isForeign && i.asks != nil:
			yes, err := i.agrees(foreign.Error() + ". Replace it?")
			if err != nil {
				return nil, err
			}
			if !yes {
				i.tellKept(client)
				return nil, nil
			}
			want.Foreign = true
		default:
			return c, err
		}
	}
}

// askRoots asks for the directory to work in; nil: an empty answer or a no, so none.
func (i *installer) askRoots(client string) ([]string, error) {
	answer, err := i.ask("Which directory may " + client + " work in?")
	if err != nil {
		return nil, err
	}
	if answer == "" {
		return nil, nil
	}
	if rest, ok := strings.CutPrefix(answer, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		answer = i.places.Home + rest
	}
	info, err := os.Stat(answer)
	if declines(answer) && err != nil {
		return nil, nil //nolint:nilerr // it is the answer, and no directory
	}
	if err != nil || !info.IsDir() {
		return nil, usage("codehand install "+client+" DIRECTORY", "%q is no directory", answer)
	}
	if answer, err = filepath.Abs(answer); err != nil {
		return nil, err
	}
	return []string{answer}, i.checkRoots([]string{answer})
}

// make shows a change, asks, and makes it. If the file changes meanwhile, it is planned and shown anew.
func (i *installer) make(c *install.Change, plan planner) error {
	for range maxTries {
		if err := i.show(c); err != nil {
			return err
		}
		if len(c.Files) == 0 || i.flags.dryRun {
			return nil
		}
		if i.asks != nil {
			yes, err := i.agrees("Write this?")
			if err != nil {
				return err
			}
			if !yes {
				i.tellKept(c.Client)
				return nil
			}
		}
		if _, err := config.OpenState(i.places.State); err != nil {
			return &exitError{code: exitConfig, err: err}
		}
		err := c.Apply(i.cmd.Context())
		if !errors.Is(err, install.ErrChanged) {
			if err == nil {
				i.tell(c)
			}
			return err
		}
		fmt.Fprintf(i.t.errs, "codehand: %v; looking again\n", err)
		if c, err = i.decided(c.Client, plan); err != nil || c == nil {
			return err
		}
	}
	return install.ErrChanged
}

func (i *installer) tellKept(client string) {
	fmt.Fprintf(i.t.errs, "codehand: %s stays as it was\n", client)
}

// maxTries is how often a change is planned while others change the file.
const maxTries = 100

// show prints what is to be done.
func (i *installer) show(c *install.Change) error {
	if len(c.Files) == 0 {
		state := "is connected already"
		if i.removes {
			state = "does not name codehand"
		}
		_, err := fmt.Fprintf(i.t.out, "%s: %s; nothing to do\n", c.Client, state)
		return err
	}
	paint := &painter{}
	for _, f := range c.Files {
		what := "change "
		switch {
		case f.Old == nil:
			what = "create "
		case f.New == nil:
			what = "remove "
		}
		text := fmt.Sprintf("%s: %s%s%s\n", c.Client, what, printable(f.File), i.sharers(c.Client, f.File))
		for line := range strings.Lines(f.Diff) {
			line = printable(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    "))
			if colours(i.t.out) {
				line = paint.line(line)
			}
			text += line + "\n"
		}
		if strings.Contains(f.Diff, "***") {
			text += "(*** stands for what is not shown of other entries; it stays as it is)\n"
		}
		if _, err := fmt.Fprint(i.t.out, text); err != nil {
			return err
		}
	}
	if link := install.Link(c.Client); i.flags.dryRun && link != "" && i.flags.remote == "" && !i.removes {
		_, err := fmt.Fprintf(i.t.out, "or open this link, if codehand is on PATH: %s\n", link)
		return err
	}
	return nil
}

// sharers says which other clients lose their entry with a file of this one.
func (i *installer) sharers(client, file string) string {
	var others []string
	for _, c := range install.Look(i.places) {
		if i.removes && c.Client != client && c.File == file && c.Entry != nil {
			others = append(others, c.Client)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return " (this is the entry of " + strings.Join(others, ", ") + ", too)"
}

// tell says what came of a change, and what is left to a person.
func (i *installer) tell(c *install.Change) {
	for _, f := range c.Files {
		i.written = append(i.written, f.File)
	}
	done := "is connected; restart it, or reload its servers"
	switch {
	case i.removes:
		done = "is not connected any more; restart it"
	case !slices.Contains(i.present, c.Client):
		done = "was not found on this machine; its file is ready for when it is"
	}
	fmt.Fprintf(i.t.errs, "codehand: %s %s\n", c.Client, done)
	if c.Rootless {
		fmt.Fprintf(i.t.errs, "codehand: %s does not always start servers in the project; if codehand then finds no "+
			"directory to work in, name one: codehand install %s DIRECTORY\n", c.Client, c.Client)
	}
	if name := i.flags.tokenEnv; name != "" && !i.removes {
		fmt.Fprintf(i.t.errs, "codehand: set %s to the token where %s runs; VS Code asks for it instead\n", name,
			c.Client)
	}
	if login := logins[c.Client]; login != "" && i.flags.remote != "" && i.flags.tokenEnv == "" && !i.removes {
		fmt.Fprintf(i.t.errs, "codehand: if %s wants a sign-in: %s\n", printable(i.flags.remote), login)
	}
}

// logins say how the clients begin to sign in that do not by themselves.
var logins = map[string]string{
	"claude-code": "claude mcp login codehand",
	"codex":       "codex mcp login codehand",
	"gemini":      "/mcp auth codehand, in Gemini CLI",
	"opencode":    "opencode mcp auth codehand",
}

// refused says why a client's file stays as it is, and what can be done by hand.
func (i *installer) refused(client string, err error) error {
	errs := i.t.errs
	fmt.Fprintf(errs, "codehand: %s: %v\n", client, err)
	refused, ok := errors.AsType[*install.RefusedError](err)
	foreign, isForeign := errors.AsType[*install.ForeignError](err)
	switch syntax, isSyntax := errors.AsType[*forms.SyntaxError](err); {
	case ok && refused.Snippet != "":
		fmt.Fprintf(errs, "hint: nothing was written; add this to %s:\n%s", printable(refused.File), refused.Snippet)
	case isForeign:
		fmt.Fprintf(errs, "hint: nothing was written; to replace the entry in %s: codehand %s %s --yes\n",
			printable(foreign.File), i.cmd.Name(), client)
	case isSyntax:
		fmt.Fprintf(errs, "hint: nothing was written; fix line %d of %s\n", syntax.Line, printable(syntax.File))
	}
	return &exitError{code: exitFailed, err: errors.New("")}
}
