package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"codehand/server/clients/install"
	"codehand/server/config"
	"codehand/tools/results"
	"codehand/tools/secrets"
)

func newMCPImport(t *terminal) *cobra.Command {
	var all, dry bool
	cmd := &cobra.Command{
		Use:         "import CLIENT",
		Short:       "Mount the servers that the file of another client names",
		Annotations: map[string]string{ofMounts: ""},
		Long: `Read the servers that a client's own file and that of the project name (claude-code,
claude-desktop, cursor, vscode, codex and all others that install knows), and offer
to mount them, one by one. Nothing of the client's file is changed, and codehand
itself is left out.

A key that stands there in clear is not copied into your settings: it goes to a
file of its own that only you may read, below mcp-keys beside your file of settings,
and the settings refer to it. References to variables stay references. What cannot
be taken over is said.

Exit codes: 0 done, 1 some could not be mounted, 2 usage, 3 configuration.`,
		Example: "  codehand mcp import claude-code\n  codehand mcp import cursor --dry-run",
		Args:    wanted(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			i := mcpImport{t: t, dry: dry}
			switch {
			case all && dry:
				return usage("codehand mcp import --help", "--all and --dry-run exclude each other")
			case isTerminal(t.in) && !all && !dry:
				i.asks = bufio.NewReader(t.input(cmd.Context()))
			case !all && !dry:
				return usage("codehand mcp import --help",
					"nobody can be asked here: --all mounts all, --dry-run shows")
			}
			cfg, _, err := load(cmd, nil)
			if err != nil {
				return &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
			}
			if i.file = cfg.Permissions.UserFile; i.file == "" {
				return &exitError{code: exitConfig, err: errors.New("there is no place for your file of settings"),
					hint: "--config FILE"}
			}
			others, err := install.Others(clientPlaces(cfg), args[0])
			if err != nil {
				return &exitError{code: exitFailed, err: err, hint: "codehand doctor"}
			}
			if len(others) == 0 {
				_, err := fmt.Fprintf(t.out, "the files of %s name no other server\n", args[0])
				return err
			}
			for _, o := range others {
				if err := i.offer(o); err != nil {
					return err
				}
			}
			if i.failed > 0 {
				return &exitError{code: exitFailed, err: fmt.Errorf("%d of %d servers could not be mounted", i.failed,
					len(others)), hint: "codehand mcp list"}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "mount all without a question")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be mounted, and change nothing")
	return cmd
}

// An mcpImport offers servers, one after the other.
type mcpImport struct {
	t      *terminal
	file   string        // the user's file of settings
	dry    bool          // nothing is changed
	asks   *bufio.Reader // where a person answers; nil: nobody is asked
	failed int
}

// offer mounts one server if the person wants it, or says why it cannot be.
func (i *mcpImport) offer(o install.Other) error {
	say := func(form string, args ...any) { fmt.Fprintf(i.t.out, form+"\n", args...) }
	name := results.Line(results.Clean(o.Name), 60)
	if o.Disabled {
		say("%s: left out, it is switched off in %s", name, o.File)
		return nil
	}
	a, err := adopt(o, filepath.Join(filepath.Dir(i.file), "mcp-keys"))
	if err != nil {
		i.failed++
		say("%s: cannot be taken over: %s", name, results.Line(results.Clean(err.Error()), 300))
		return nil
	}
	say("%s, of %s:\n%s", name, o.File, strings.TrimSuffix(results.Clean(config.MountText(a.mount)), "\n"))
	for _, path := range slices.Sorted(maps.Keys(a.keys)) {
		say("# a key that stands there in clear goes to %s", path)
	}
	if len(o.Left) > 0 {
		say("# not taken over: %s", results.Line(results.Clean(strings.Join(o.Left, ", ")), 200))
	}
	if i.dry {
		return nil
	}
	if i.asks != nil {
		fmt.Fprintf(i.t.out, "Mount it as %s? [y/N] ", a.mount.Name)
		answer, err := i.asks.ReadString('\n')
		if err != nil && answer == "" {
			return err
		}
		if w := strings.ToLower(strings.TrimSpace(answer)); w != "y" && w != "yes" {
			return nil
		}
	}
	if err := i.mount(a); err != nil {
		i.failed++
		say("%s: %s", name, err)
		return nil
	}
	say("mounted; try it: codehand mcp test %s", a.mount.Name)
	return nil
}

// mount writes the files of keys and then the table. What was written for a table that cannot be goes again.
func (i *mcpImport) mount(a adopted) (err error) {
	var written []string
	defer func() {
		for _, path := range written {
			if err != nil {
				_ = os.Remove(path) // the error that counts is there
			}
		}
	}()
	for _, path := range slices.Sorted(maps.Keys(a.keys)) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s is there already; remove it or mount the server with codehand mcp add", path)
		}
		if err != nil {
			return err
		}
		written = append(written, path)
		_, err = f.WriteString(a.keys[path] + "\n")
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return config.AddMount(i.file, a.mount)
}

// adopted is a server as we would mount it.
type adopted struct {
	mount config.Mount
	keys  map[string]string // contents of files that are written with it, by path
}

var (
	nameless  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9]+`) })
	variables = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}`)
	})
	unclear = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{|\$[A-Za-z_]|\{\{`) })
	// keyName is what a variable or header is called that holds a key.
	keyName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|PAT$`)
	})
)

// adopt makes a mount of a server of another client. keys is the directory for files of keys. The error says what
// cannot be taken over.
func adopt(o install.Other, keys string) (adopted, error) {
	a := adopted{keys: map[string]string{}}
	m := &a.mount
	if m.Name = strings.Trim(nameless().ReplaceAllString(strings.ToLower(o.Name), "_"), "_"); len(m.Name) > 20 {
		m.Name = strings.TrimRight(m.Name[:20], "_")
	}
	plain := func(what, text string) error {
		switch {
		case unclear().MatchString(text):
			return fmt.Errorf("%s has a variable, which only env and headers may have here", what)
		case secrets.Masked(text) != text:
			return fmt.Errorf("%s holds a key in clear; put it into a variable of env or a header first", what)
		}
		return nil
	}
	if o.Remote {
		m.At.URL = o.URL
		if o.SSE {
			m.At.Transport = "sse"
		}
		if err := plain("its address", o.URL); err != nil {
			return a, err
		}
	} else {
		m.Program.Argv, m.Program.Cwd = append([]string{o.Command}, o.Args...), o.Dir
		for _, word := range append(slices.Clone(m.Program.Argv), o.Dir) {
			if err := plain("its command", word); err != nil {
				return a, err
			}
		}
	}
	var err error
	if o.Remote {
		m.At.Headers, err = a.pairs(o.Headers, keys)
	} else {
		m.Program.Env, err = a.pairs(o.Env, keys)
	}
	return a, err
}

// pairs are variables or headers with references for what may be a key; nil: there are none.
func (a *adopted) pairs(given map[string]string, keys string) (map[string]string, error) {
	var pairs map[string]string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		referred := variables().ReplaceAllString(value, "${$1}")
		rest := variables().ReplaceAllString(value, "")
		switch {
		case unclear().MatchString(rest):
			return nil, fmt.Errorf("%s has a variable that only the client knows", name)
		case keyName().MatchString(name) && strings.Trim(rest, " ") != "" && !schemeOnly(rest),
			secrets.Masked(value) != value:
			if referred != value || variables().MatchString(value) {
				return nil, fmt.Errorf("%s has a key in clear beside a variable", name)
			}
			scheme, key := "", value
			if s, k, ok := strings.Cut(value, " "); ok && schemeOnly(s) {
				scheme, key = s+" ", k
			}
			path := filepath.Join(keys, a.mount.Name+"."+strings.Trim(nameless().ReplaceAllString(strings.ToLower(name),
				"_"), "_"))
			a.keys[path] = key
			referred = scheme + "${file:" + path + "}"
		}
		if pairs == nil {
			pairs = map[string]string{}
		}
		pairs[name] = referred
	}
	return pairs, nil
}

// schemeOnly says whether a text is how a header names its kind of key, and no key.
func schemeOnly(text string) bool {
	return slices.Contains([]string{"bearer", "basic", "token", "apikey"}, strings.ToLower(strings.TrimSpace(text)))
}
