package credentials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codehand/tools/sandbox"
)

const (
	// ownTime is how long the person's own git may take for one answer.
	ownTime = 30 * time.Second
	// maxListed is the most bytes of a person's configuration of git.
	maxListed = 1 << 20
	// endGrace is between SIGTERM and SIGKILL of a git that took too long.
	endGrace = 300 * time.Millisecond
)

// An own runs the person's git outside of the sandbox.
type own struct {
	dir     *os.Root // where it starts: no repository, and no command writes there
	written []string // directories that commands write, without links
	home    string
}

// A setting is a key of the person's configuration.
type setting struct{ origin, key, value string }

// settings returns the person's configuration of git, that of the system included. The error says that a command could
// have written a part of it.
func (o own) settings(ctx context.Context) ([]setting, error) {
	out, err := o.git(ctx, "", "config", "--list", "--show-origin", "--includes", "-z")
	if err != nil {
		return nil, err
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	var all []setting
	for i := 0; i+1 < len(fields); i += 2 {
		key, value, _ := strings.Cut(fields[i+1], "\n")
		s := setting{origin: fields[i], key: key, value: value}
		if path, ok := strings.CutPrefix(s.origin, "file:"); ok && o.reached(path) {
			return nil, fmt.Errorf("%s lies where commands write, so it is not obeyed", path)
		}
		if file, ok := strings.CutPrefix(s.origin, "file:"); ok && s.key == "include.path" {
			if !filepath.IsAbs(s.value) && !strings.HasPrefix(s.value, "~/") {
				s.value = filepath.Join(filepath.Dir(o.abs(file)), s.value)
			}
			if o.reached(s.value) { // one that is missing now could be made before git reads it again
				return nil, fmt.Errorf("%s lies where commands write, so it is not obeyed", s.value)
			}
		}
		if strings.HasPrefix(s.key, "credential.") && strings.HasSuffix(s.key, ".helper") {
			if path := o.program(s.value); path != "" {
				return nil, fmt.Errorf("the helper %s lies where commands write, so it is not started", path)
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// insteadOf are the rewritings of URLs in a configuration: what a URL begins with, and what stands for it.
func insteadOf(all []setting) map[string]string {
	found := map[string]string{}
	for _, s := range all {
		if base, ok := strings.CutPrefix(s.key, "url."); ok && s.value != "" {
			if base, ok := strings.CutSuffix(base, ".insteadof"); ok {
				found[s.value] = base
			}
		}
	}
	return found
}

// reached says whether commands write path, or a directory above it, or what it leads to.
func (o own) reached(path string) bool {
	path = o.abs(path)
	real := path
	for dir := path; ; dir = filepath.Dir(dir) { // what is missing may be made where its directory leads
		if to, err := filepath.EvalSymlinks(dir); err == nil {
			real = to + strings.TrimPrefix(path, dir)
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return slices.ContainsFunc(o.written, func(dir string) bool { return within(path, dir) || within(real, dir) })
}

// program returns the first word of a helper that names a file which commands write; "": none does.
func (o own) program(helper string) string {
	words := strings.FieldsFunc(helper, func(r rune) bool { return strings.ContainsRune(" \t\n'\"!;|&()=", r) })
	for _, word := range words {
		if strings.ContainsAny(word, `/\`) && o.reached(strings.ReplaceAll(word, `\`, "")) {
			return word
		}
	}
	return ""
}

func (o own) abs(path string) string {
	for _, prefix := range []string{"~/", "$HOME/", "${HOME}/"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			path = filepath.Join(o.home, rest)
		}
	}
	if !filepath.IsAbs(path) {
		return filepath.Join(o.dir.Name(), path)
	}
	return filepath.Clean(path)
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// fill returns what the person's git knows about a request, as lines for git: user and password, and nothing else.
func (o own) fill(ctx context.Context, r request) (string, error) {
	out, err := o.git(ctx, r.text(), "credential", "fill")
	if err != nil {
		return "", err
	}
	said, err := pairs(string(out))
	if err != nil || len(out) > maxRequest {
		return "", errors.New("the user's git gave an answer that cannot be read")
	}
	if said["protocol"] != r.protocol || strings.ToLower(said["host"]) != r.host {
		return "", errors.New("the user's git answered for another host")
	}
	if said["username"] == "" || said["password"] == "" {
		return "", errors.New("the user's git has none")
	}
	return "username=" + said["username"] + "\npassword=" + said["password"] + "\n", nil
}

// ownGit are the variables of git's that say which configuration is the person's. Others, as GIT_DIR, could lead
// elsewhere.
var ownGit = []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}

// environ is that of the person, in which nobody is asked for a password and no repository is found.
func (o own) environ() []string {
	return append(sandbox.Outside(o.written, func(name string) bool {
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(ownGit, name) ||
			slices.Contains([]string{"SSH_ASKPASS", "PWD", "OLDPWD"}, name)
	}), "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GCM_INTERACTIVE=never",
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(o.dir.Name()))
}

// git runs the person's git and returns what it printed. An error says nothing of what it printed: that may be secret.
func (o own) git(ctx context.Context, in string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, ownTime, errors.New("the user's git did not answer in time"))
	defer cancel()
	env := o.environ()
	path, err := sandbox.Find(env, "git")
	if err != nil {
		return nil, err
	}
	stdin, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = stdin.Close(), feed.Close() }() // the child has its own end
	printed, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = printed.Close(), out.Close() }() // likewise
	process, err := sandbox.Start(ctx, sandbox.Cmd{Path: path, Args: args, Env: env, Dir: o.dir, Stdin: stdin,
		Stdout: out})
	if err != nil {
		return nil, err
	}
	_ = out.Close()
	_, _ = io.WriteString(feed, in) // a pipe holds more than maxRequest; who does not read it says so by its exit code
	_ = feed.Close()
	type read struct {
		text []byte
		err  error
	}
	got := make(chan read, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(sandbox.Output(printed), maxListed+1))
		got <- read{text, err}
	}()
	select {
	case <-process.Done():
	case <-ctx.Done():
	}
	err = context.Cause(ctx)
	process.End(endGrace)
	_ = printed.SetReadDeadline(time.Now()) // a process that cannot be killed keeps it open
	said := <-got
	switch {
	case err != nil:
		return nil, err
	case process.Exit().Code != 0:
		return nil, errors.New("the user's git has none")
	case len(said.text) > maxListed:
		return nil, errors.New("the user's git printed too much")
	}
	return said.text, cmp.Or(said.err, nil)
}
