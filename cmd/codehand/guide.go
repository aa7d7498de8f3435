package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codehand/server/clients"
	"codehand/server/clients/install"
	"codehand/server/config"
	"codehand/server/doctor"
	"codehand/tools/sandbox"
)

// probeTime bounds the look at the sandbox: a guide that lets people wait is not short. A probe takes some tens of
// milliseconds (BenchmarkProbe).
const probeTime = 250 * time.Millisecond

// guide is what a person reads who types codehand and nothing else: what was found here, and what to do next.
func guide(ctx context.Context, t *terminal) {
	home, _ := os.UserHomeDir() // "": then no file of a client is known
	s := surroundings{
		passing: fromCache(installed()),
		clients: install.Look(clientPlaces(config.Config{Home: home})),
		git:     programHere("git", "not found: what commands change cannot be undone"),
		bash:    programHere("bash", "not found: commands run in another shell"),
		sandbox: sandboxHere(ctx, t),
	}
	_, _ = io.WriteString(t.errs, s.guide(colours(t.errs))) // an error has no reader left
}

// programHere is where a program is, or what its lack means.
func programHere(name, without string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return without
	}
	return path
}

// sandboxHere says how far commands are confined here, if that can be told soon.
func sandboxHere(ctx context.Context, t *terminal) string {
	const later = "codehand doctor tells"
	dir, err := os.MkdirTemp("", "codehand-guide-*") // the state directory is not made before it is needed
	if err != nil {
		return later
	}
	t.scratch.Store(&dir)
	defer func() { _ = os.RemoveAll(dir) }() // it is empty
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return later
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	r := sandbox.Probe(ctx, dir)
	if ctx.Err() != nil || r.Unknown() {
		return later // what was not proven in time counts as missing
	}
	return fmt.Sprintf("level %d: %s", r.Level, doctor.LevelText(r.Level))
}

// surroundings are what codehand finds on a machine. The texts are for people.
type surroundings struct {
	passing            bool // this program was made for one run
	clients            []install.Found
	git, bash, sandbox string
}

// guide is the text, whose last command is the one to type next.
func (s surroundings) guide(coloured bool) string {
	here, next, why := s.advice()
	var b strings.Builder
	b.WriteString("codehand gives an MCP client the tools of a coding agent: read, write, edit, search, run.\n" +
		"Your client starts it; nothing has to run before.\n\nFound here:\n")
	for _, row := range [][2]string{{"clients", here}, {"git", s.git}, {"bash", s.bash}, {"sandbox", s.sandbox}} {
		for i, line := range wrapped(row[1], guideWidth) {
			if i > 0 {
				row[0] = ""
			}
			fmt.Fprintf(&b, "  %-8s %s\n", row[0], line)
		}
	}
	b.WriteString(`
A tour of two minutes:  codehand try
A check of all this:    codehand doctor
All commands:           codehand help

`)
	if coloured {
		next = bold + next + plain
	}
	fmt.Fprintf(&b, "Next, %s: %s\n", why, next)
	return b.String()
}

// guideWidth is how wide the texts about what was found are at most.
const guideWidth = 90

// advice says which clients are here, and the one command to type next, with its reason.
func (s surroundings) advice() (here, next, why string) {
	var names, open []string
	broken := false
	for i, f := range s.clients {
		if !f.Present || i > 0 && s.clients[i-1].Client == f.Client {
			continue // another file of a client follows its first
		}
		connected := false
		for _, file := range s.clients[i:] {
			ours := file.Client == f.Client && file.Entry != nil && file.Entry.Ours()
			connected = connected || ours && !file.Entry.Disabled
			broken = broken || file.Client == f.Client && file.Err != nil
		}
		name := f.Name
		if connected {
			name += " (connected)"
		} else {
			open = append(open, f.Client)
		}
		names = append(names, name)
	}
	here = strings.Join(names, ", ")
	if here == "" {
		here = "none in its usual place"
	}
	switch {
	case s.passing && len(open) > 0:
		return here, "go install ./cmd/codehand", "since no client can start what go run made"
	case broken:
		return here, "codehand doctor", "since the file of a client cannot be read"
	case len(names) == 0:
		return here, "codehand try", "to see what a model would"
	case len(open) == 0:
		return here, "codehand doctor", "to see that each client works"
	}
	next, why = "codehand install "+strings.Join(open, " "), "to connect it"
	if len(open) > 1 {
		why = "to connect them"
	}
	switch {
	case !slices.ContainsFunc(open, func(id string) bool { return !needsRoot(id) }):
		next += " DIRECTORY" // --all leaves them out where no directory is given
	case len(open) > 1:
		next = "codehand install --all"
	}
	return here, next, why
}

// needsRoot says whether a client's entry must name a directory to work in.
func needsRoot(client string) bool {
	c, ok := clients.Of(client)
	return ok && c.MustRoot()
}
