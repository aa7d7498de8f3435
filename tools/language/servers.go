package language

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/confine"
	"codehand/tools/lsp"
	"codehand/tools/sandbox"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// Missing says why the session has no language server at all; "": it has some.
func Missing(s *session.State) string {
	switch {
	case s.LSP == nil:
		return "the operator switched language servers off (lsp.enabled)."
	case s.Prefs.NoShell != "":
		return "no programs are started here: " + s.Prefs.NoShell
	case !slices.ContainsFunc(s.LSP.Servers(), func(x lsp.Server) bool { return installed(s, x) }):
		return "no language server is installed. The operator can install one, such as gopls, or configure one as " +
			"[lsp.NAME]."
	}
	return ""
}

// environ is the usual environment of a session's servers.
func environ(s *session.State) []string {
	if s.ServerEnv == nil {
		return nil
	}
	return s.ServerEnv()
}

// installed says whether the program of a server is there. One that the operator configured counts in any case: what is
// wrong with it must be told.
func installed(s *session.State, x lsp.Server) bool {
	if !x.Preset {
		return true
	}
	_, err := sandbox.Find(environ(s), x.Argv[0])
	return err == nil
}

// serverFor returns the server that knows a file; the first of several that is installed.
func serverFor(s *session.State, path string) (lsp.Server, bool) {
	for _, x := range s.LSP.Servers() {
		if x.Knows(path) != "" && installed(s, x) {
			return x, true
		}
	}
	return lsp.Server{}, false
}

// rootOf returns the innermost root around a canonical path; "": it is outside of them.
func rootOf(s *session.State, path string) (in string) {
	for _, root := range s.Space.Roots() {
		if wording.Below(root, path) && len(root) > len(in) {
			in = root
		}
	}
	return in
}

// placeIn is where the server x works on the files of a root.
func placeIn(s *session.State, x lsp.Server, root string) lsp.Place {
	roots := s.Space.Roots()
	at := lsp.Place{Owner: s.Key.Principal, Root: root, Roots: strings.Join(roots, "\x00"),
		Denied: strings.Join(deniedOf(s, x, roots), "\x00")}
	if s.Confine != nil {
		at.Confined = s.Confine.Confiner // of the tenant, whose rules it keeps
	}
	return at
}

// deniedOf returns what rules keep from the server x now, of what it would read: files of its languages, and
// directories.
func deniedOf(s *session.State, x lsp.Server, roots []string) []string {
	return slices.DeleteFunc(s.Confine.DeniedNow(s.Rules, roots), func(path string) bool {
		if x.Knows(path) != "" {
			return false
		}
		info, err := os.Stat(path)
		return err == nil && !info.IsDir()
	})
}

// Use returns the server that knows the file at path, which is canonical, and starts it if need be. done must be called
// at the end. The error is a refusal.
func Use(ctx context.Context, env tool.Env, path string) (c *lsp.Client, done func(), err error) {
	x, ok := serverFor(env.State, path)
	if !ok {
		return nil, nil, noServer(env, path)
	}
	root := rootOf(env.State, path)
	if root == "" {
		return nil, nil, tool.Refuse(tool.LSPUnavailable,
			"%s is outside the workspace, where no language server works. Use grep_search.",
			wording.ShownName(env, path))
	}
	return use(ctx, env, placeIn(env.State, x, root), x)
}

// UseAll returns the servers of each language that a root has, as far as a file at its top or one of the servers that
// run says so. done must be called at the end. The error is a refusal, if none can be used.
func UseAll(ctx context.Context, env tool.Env) (all []*lsp.Client, done func(), err error) {
	var ends []func()
	done = func() {
		for _, end := range ends {
			end()
		}
	}
	for _, root := range env.Space.Roots() {
		var had []string // extensions that a server knows by now
		for _, x := range env.LSP.Servers() {
			exts := x.Extensions()
			if slices.ContainsFunc(exts, func(e string) bool { return slices.Contains(had, e) }) ||
				!installed(env.State, x) {
				continue
			}
			at := placeIn(env.State, x, root)
			c, end, ok := env.LSP.Warm(at, x)
			if !ok {
				if !marked(root, x) {
					continue
				}
				var failed error
				if c, end, failed = use(ctx, env, at, x); failed != nil {
					err = failed
					continue
				}
			}
			all, ends, had = append(all, c), append(ends, end), append(had, exts...)
		}
	}
	if len(all) > 0 {
		return all, done, nil
	}
	if err == nil {
		err = tool.Refuse(tool.LSPUnavailable, "No language is known at the top of %s. Give a file as filePath, "+
			"whose server is asked then, or use grep_search.", strings.Join(env.Space.Roots(), ", "))
	}
	return nil, nil, err
}

// marked says whether a directory has a file by which a server knows its language.
func marked(dir string, x lsp.Server) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return slices.Contains(x.Marks, e.Name()) || x.Knows(e.Name()) != "" && e.Type().IsRegular()
	})
}

func use(ctx context.Context, env tool.Env, at lsp.Place, x lsp.Server) (*lsp.Client, func(), error) {
	done := wording.TellIfSlow(env, "Starting "+x.Name)
	defer done()
	c, end, err := env.LSP.Use(ctx, at, x, launch(env.State, at))
	if err != nil {
		return nil, nil, Refusal(ctx, x.Name, err)
	}
	return c, end, nil
}

func noServer(env tool.Env, path string) error {
	ext := filepath.Ext(path)
	var known []string
	for _, x := range env.LSP.Servers() {
		if installed(env.State, x) {
			known = append(known, x.Extensions()...)
		} else if x.Knows(path) != "" {
			return tool.Refuse(tool.LSPUnavailable,
				"No language server for %s files is installed. Use grep_search, or tell the user to install %s.", ext,
				x.Name)
		}
	}
	slices.Sort(known)
	return tool.Refuse(tool.LSPUnavailable, "No language server knows %s. They know: %s. Use grep_search.",
		wording.ShownName(env, path), strings.Join(slices.Compact(known), " "))
}

// Refusal is the refusal for an error of tools/lsp.
func Refusal(ctx context.Context, server string, err error) error {
	said, isSaid := errors.AsType[*lsp.RequestError](err)
	none, isNone := errors.AsType[*lsp.UnavailableError](err)
	switch {
	case isSaid:
		return tool.Refuse(tool.LSPFailed, "%s says: %s", server, wording.LineOf(said.Text, 300))
	case isNone:
		return &tool.Refusal{Code: tool.LSPUnavailable, Text: fmt.Sprintf("The language server %s is not running: %s. "+
			"Use grep_search.", none.Server, wording.LineOf(none.Why, 300)), Cause: err}
	case errors.Is(err, lsp.ErrTime):
		return tool.Refuse(tool.LSPTimeout, "%s did not answer within 30 s. It may still read the project: try again, "+
			"or use grep_search.", server)
	case errors.Is(err, lsp.ErrReading):
		return tool.Refuse(tool.LSPTimeout, "%s still reads the project, and knows nothing of it until then. Try "+
			"again in a minute, or use grep_search.", server)
	case errors.Is(err, lsp.ErrLost):
		return tool.Refuse(tool.LSPFailed, "%s ended while it worked on this. Try again: it is started anew.", server)
	case ctx.Err() != nil:
		return err
	}
	return tool.Refuse(tool.LSPFailed, "%s gave no usable answer: %s.", server, wording.LineOf(err.Error(), 300))
}

// launch starts a server in the profile of commands that only read. It has caches of its own, no network, and a
// temporary directory.
func launch(s *session.State, at lsp.Place) lsp.Launch {
	rules, roots, usual, confiner := s.Rules, s.Space.Roots(), environ(s), s.Confine
	dir, size, common := s.ServerDir, s.ServerSize, s.Repositories()
	return func(ctx context.Context, x lsp.Server) (lsp.Process, error) {
		path, err := sandbox.Find(usual, x.Argv[0])
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256([]byte(at.Owner + "\x00" + at.Roots + "\x00" + at.Root + "\x00" + x.Name))
		temp := filepath.Join(dir, hex.EncodeToString(sum[:8]))
		if err := os.MkdirAll(temp, 0o700); err != nil {
			return nil, err
		}
		cmd, hold, err := confined(confiner, confine.Use{Roots: roots, Rules: rules, ReadOnly: true, Background: true,
			Repositories: common}, x, temp, size)
		if err != nil {
			return nil, err
		}
		cmd.Path, cmd.Args = path, x.Argv[1:]
		cmd.Env = slices.Concat(sandbox.Neutral(usual), cmd.Env, x.Env)
		root, err := os.OpenRoot(at.Root)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // the process has entered it
		cmd.Dir = root
		release := func() {}
		if hold != nil {
			if release, err = hold(); err != nil {
				return nil, err
			}
		}
		return lsp.Start(ctx, cmd, func() { release(); _ = os.RemoveAll(temp) }, slog.Default())
	}
}

// confined is how a server is started: profile, level, limits, and what it gets besides the usual environment.
func confined(s *confine.Session, u confine.Use, x lsp.Server, temp string, size int64) (cmd sandbox.Cmd,
	hold func() (func(), error), err error) {
	var own *confine.Session
	if s != nil {
		own = &confine.Session{Confiner: s.Confiner, Temp: temp}
	}
	c, err := own.Command(u)
	if err != nil {
		return cmd, nil, err
	}
	if x.RunsCode && x.Preset && c.Level < sandbox.LevelFull {
		return cmd, nil, fmt.Errorf("it runs programs of the project, and this machine confines commands at level %d "+
			"only; the operator can allow it with a table [lsp.%s]", c.Level, x.Name)
	}
	cmd = sandbox.Cmd{Profile: c.Profile, Level: c.Level, Groups: c.Groups, Env: c.Env}
	if c.Groups != nil && size > 0 {
		limits := c.Groups.Limits()
		limits.Memory = size
		cmd.Groups = c.Groups.With(limits)
	}
	in := temp
	if c.Profile != nil {
		c.Profile.Temp = temp
		if c.Level == sandbox.LevelFull {
			in = "/tmp"
			cmd.Env = append(cmd.Env, s.Modules()...)
		}
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+in, "CARGO_TARGET_DIR="+filepath.Join(in, "target"))
	return cmd, c.Hold, nil
}
