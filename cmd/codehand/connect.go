package main

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"codehand/server/bridge"
	"codehand/server/config"
	"codehand/server/replies"
	"codehand/tools/sandbox"
)

// connectFlags is what connect is told on its command line.
type connectFlags struct {
	session, tokenEnv, tokenFile, caFile string
	insecure                             bool
}

func newConnect(t *terminal) *cobra.Command {
	var f connectFlags
	cmd := &cobra.Command{
		Use:   "connect URL",
		Short: "Connect a client on standard input and output to a remote endpoint",
		Long: `Connect one MCP client on standard input and output to the endpoint at URL, over
Streamable HTTP, in every protocol revision from 2024-11-05 to 2026-07-28. Use it
for clients that cannot speak to a remote server themselves. It retries while the
endpoint is unreachable, and makes a new session when the old one is lost. It
exits when the input ends.

Give the token in an environment variable (--token-env) or in a file that only
you can read (--token-file). The handle of the conversation is --session, or else
CODEHAND_SESSION, CLAUDE_CODE_SESSION_ID or COPILOT_AGENT_SESSION_ID, or else
random. HTTPS_PROXY, HTTP_PROXY and NO_PROXY are honoured.

Exit codes: 0 the input ended or a signal came, 1 reading the input failed,
2 usage, 3 configuration, 128+n a second signal n.`,
		Example: `  codehand connect http://127.0.0.1:7433/mcp
  codehand connect https://tools.example.com/mcp --token-env TEAM_TOKEN`,
		Args: wanted(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return t.connect(cmd, args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", "handle of the conversation: 8-64 characters of [A-Za-z0-9._-]")
	flags.StringVar(&f.tokenEnv, "token-env", "", "name of the environment variable that holds the token")
	flags.StringVar(&f.tokenFile, "token-file", "", "file that holds the token, mode 0600")
	flags.BoolVar(&f.insecure, "insecure", false, "send the token even over http:// to another machine")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file of certificate authorities to trust besides the system's")
	return cmd
}

// connect passes one client on. Nothing else may write to standard output meanwhile.
func (t *terminal) connect(cmd *cobra.Command, url string, f connectFlags) error {
	if isTerminal(t.in) {
		fmt.Fprintf(t.errs, "codehand %s: MCP on stdin and stdout, usually started by a client. Ctrl-D ends it.\n",
			buildVersion())
	}
	if err := sandbox.Hide(); err != nil { // weaker than it could be, and said
		fmt.Fprintf(t.errs, "codehand: warning: other processes can read the environment of this one: %v\n", err)
	}
	o := bridge.Options{
		URL: url, Insecure: f.insecure, Version: buildVersion(), Refuse: replies.Refusals(buildVersion()),
	}
	var err error
	if o.Session, err = conversationOf(cmd.Flags().Changed("session"), f.session, os.Getenv); err != nil {
		return err
	}
	if o.Token, o.TokenFrom, err = bearer(f); err != nil {
		return err
	}
	if o.CAs, err = authorities(f.caFile); err != nil {
		return err
	}
	if err := o.Check(); err != nil {
		return &exitError{code: exitUsage, err: err, hint: "codehand connect --help"}
	}
	cfg, err := t.connectSettings(cmd)
	if err != nil {
		return err
	}
	o.EOFGrace, o.ParentWatch = cfg.Stdio.EOFGrace, cfg.Stdio.ParentWatch
	if o.Log, err = t.logger(cfg); err != nil {
		return &exitError{code: exitConfig, err: err}
	}
	stdin, restore := claimStdin(t.in) // before standard output is another file
	defer restore()
	out := t.out
	if file, ok := t.out.(*os.File); ok {
		if out, err = claimStdout(file); err != nil {
			return &exitError{code: exitFailed, err: err}
		}
	}
	in := &meter{r: stdin}
	err = bridge.Run(cmd.Context(), o, in, out)
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	if in.n.Load() == 0 && cmd.Context().Err() == nil {
		fmt.Fprintln(t.errs, "codehand: stdin is closed; start this from an MCP client")
	}
	return nil
}

// connectSettings reads what connect uses of the settings: those of stdio and of the log. A conversation's id is none
// of them here, since it goes to the endpoint and may have any form.
func (t *terminal) connectSettings(cmd *cobra.Command) (config.Config, error) {
	src, _ := config.Process() // a directory that was removed is no matter here
	src.Rootless = true
	src.Env = slices.DeleteFunc(src.Env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(conversationVariables, name)
	})
	src.Flags = given(cmd)
	cfg, warnings, err := config.Load(src)
	if err != nil {
		return config.Config{}, &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
	}
	for _, w := range warnings {
		fmt.Fprintf(t.errs, "codehand: %s\n", w)
	}
	return cfg, nil
}

// conversationVariables name the conversation, the first one that is set first.
var conversationVariables = []string{"CODEHAND_SESSION", "CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID"}

// conversationOf finds the handle of the conversation; "": none is given. What a client calls its conversation is
// hashed if it has not the form of a handle, so that the same conversation is the same one again.
func conversationOf(given bool, flag string, env func(string) string) (string, error) {
	if given {
		if !config.Handle(flag) {
			return "", usage("codehand connect --help", "--session must be 8-64 characters of [A-Za-z0-9._-]")
		}
		return flag, nil
	}
	for _, name := range conversationVariables {
		id := env(name)
		switch {
		case id == "":
		case config.Handle(id):
			return id, nil
		default:
			sum := sha256.Sum256([]byte(id))
			return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20])), nil
		}
	}
	return "", nil
}

// bearer returns what gives the token, and how an operator knows it. A variable is taken out of the environment, so
// that no child can have it.
func bearer(f connectFlags) (get func() string, from string, err error) {
	switch {
	case f.tokenEnv != "" && f.tokenFile != "":
		return nil, "", usage("codehand connect --help", "--token-env and --token-file cannot be combined")
	case f.tokenEnv != "":
		value := strings.TrimSpace(os.Getenv(f.tokenEnv))
		if err := os.Unsetenv(f.tokenEnv); err != nil {
			return nil, "", usage("codehand connect --help", "--token-env %q is not the name of a variable", f.tokenEnv)
		}
		if err := checkBearer(value); err != nil {
			return nil, "", &exitError{code: exitConfig, err: fmt.Errorf("variable %s: %w", f.tokenEnv, err),
				hint: "set it in the client's configuration of this command"}
		}
		return func() string { return value }, "variable " + f.tokenEnv, nil
	case f.tokenFile != "":
		value, err := readBearer(f.tokenFile)
		if err != nil {
			return nil, "", &exitError{code: exitConfig, err: err,
				hint: "put the token alone into a file with mode 0600"}
		}
		file := &bearerFile{path: f.tokenFile, last: value}
		return file.get, "file " + f.tokenFile, nil
	}
	return nil, "", nil
}

// checkBearer refuses what cannot be sent. It never repeats it.
func checkBearer(value string) error {
	if value == "" {
		return errors.New("no token found")
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("not a token: it has spaces or other characters that a token cannot have")
	}
	return nil
}

// maxBearer is the size of a token file, in bytes.
const maxBearer = 16 << 10

// readBearer reads a token from a file that only this user can read.
func readBearer(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s can be read by others (mode %04o); run chmod 600 %s", path, info.Mode().Perm(), path)
	}
	b, err := io.ReadAll(io.LimitReader(file, maxBearer))
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(b))
	if err := checkBearer(value); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return value, nil
}

// A bearerFile is read again for each request, so that a token can be replaced while a client runs. It is safe for
// concurrent use.
type bearerFile struct {
	path string
	mu   sync.Mutex
	last string
}

// get returns the token, the last good one while the file is not usable.
func (f *bearerFile) get() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if value, err := readBearer(f.path); err == nil {
		f.last = value
	}
	return f.last
}

// authorities reads a PEM file; nil: only the system's authorities are trusted.
func authorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, &exitError{code: exitConfig, err: err}
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // there is none: then only these
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(b) {
		return nil, &exitError{code: exitConfig, err: fmt.Errorf("%s: no certificate found", path),
			hint: "use a PEM file, with a line -----BEGIN CERTIFICATE-----"}
	}
	return pool, nil
}
