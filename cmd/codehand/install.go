package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"codehand/server/bridge"
	"codehand/server/clients"
	"codehand/server/clients/install"
	"codehand/server/config"
	"codehand/tools"
	"codehand/tools/secrets"
)

// installFlags is what install and uninstall are told.
type installFlags struct {
	all, project, dryRun, yes, exclusive, list, asJSON, purge bool
	remote, tokenEnv                                          string
}

func newInstall(t *terminal) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "install [CLIENT...] [ROOT...]",
		Short: "Connect MCP clients on this machine to codehand",
		Long: `Write codehand into the configuration files of MCP clients. You see the difference
first, and are asked; --yes agrees. Everything else in a file stays byte for byte, its
old content is kept beside it as FILE.codehand-TIME.bak, and codehand uninstall takes
back what was written. No program of the client is started.

A client starts codehand with the directories ROOT. Clients that work in a project need
none. These need at least one: ` + strings.Join(withRoot(), ", ") + `.
With --all, ROOT is for those that need or can use one. With --remote clients use a
codehand serve elsewhere: the variable --token-env holds the token where the client runs.
Tokens are never written.

With --exclusive Claude Code uses only codehand's tools for files and commands. Side by
side, each refuses edits of files that only the other one has read. Its settings then
deny its own Read, Edit, Write, NotebookEdit, Bash, Glob and Grep, and allow those of
codehand that only read.

Exit codes: 0 done, 1 a file cannot be changed, 2 usage, or not on a terminal and without
--yes, 3 configuration.`,
		Example: `  codehand install --list
  codehand install claude-code codex
  codehand install claude-desktop ~/src
  codehand install --all --yes
  codehand install cursor --project --dry-run
  codehand install vscode --remote https://tools.example.com/mcp --token-env CODEHAND_TOKEN`,
		ValidArgsFunction: completeClient,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return listClients(t, cmd, f, args)
			}
			i, err := newInstaller(t, cmd, f, args)
			if err != nil {
				return err
			}
			return i.run(i.plan)
		},
	}
	flags := cmd.Flags()
	installing(cmd, &f)
	flags.BoolVar(&f.all, "all", false, "every client that is on this machine")
	flags.StringVar(&f.remote, "remote", "", "connect to the endpoint at `URL` in place of starting codehand")
	flags.StringVar(&f.tokenEnv, "token-env", "", "`NAME` of the variable that holds the token of --remote")
	flags.BoolVar(&f.exclusive, "exclusive", false, "let Claude Code use codehand's tools in place of its own")
	flags.BoolVar(&f.list, "list", false, "list the clients, their files, and whether those name codehand")
	flags.BoolVar(&f.asJSON, "json", false, "with --list, print a JSON array")
	return cmd
}

func newUninstall(t *terminal) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "uninstall [CLIENT...]",
		Short: "Take codehand out of the files of MCP clients",
		Long: `Take codehand out of the configuration files of MCP clients, with all that codehand
install wrote there. A file that nobody else has changed is as it was before, byte for
byte. Old contents that were kept beside it stay.

With --purge remove also the state directory: the history by which changes are undone,
kept results, caches of commands, and the tokens and the audit log of codehand serve. It
shows what is there, and asks. Your settings stay. Nothing is removed while a serve uses
it and, on Linux, while a client does; elsewhere end your clients first.

Exit codes: 0 done, 1 a file cannot be changed, 2 usage, or not on a terminal and without
--yes, 3 configuration.`,
		Example: `  codehand uninstall claude-code
  codehand uninstall --all --dry-run
  codehand uninstall --all --purge`,
		ValidArgsFunction: completeClient,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.all = f.all || f.purge && len(args) == 0
			i, err := newInstaller(t, cmd, f, args)
			if err != nil {
				return err
			}
			if len(i.want.Roots) > 0 {
				return usage("codehand install --list", "%s is no client, and no directory is needed", i.want.Roots[0])
			}
			err = i.run(func(client string, want install.Want) (*install.Change, error) {
				return install.PlanRemoval(i.places, client, want)
			})
			if err != nil || !f.purge {
				return err
			}
			return i.purge()
		},
	}
	installing(cmd, &f)
	cmd.Flags().BoolVar(&f.all, "all", false, "every client whose file names codehand")
	cmd.Flags().BoolVar(&f.purge, "purge", false, "remove also what codehand keeps: history, results, caches, tokens")
	return cmd
}

// installing gives a command the flags that both have.
func installing(cmd *cobra.Command, f *installFlags) {
	cmd.Flags().BoolVar(&f.project, "project", false, "the file of the project in the current directory, not your own")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the difference, and write nothing")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "ask nothing, and change also an entry that codehand did not write")
	localConfig(cmd, "configuration file to read instead of the user's")
}

// withRoot are the titles of clients whose entry must name a directory.
func withRoot() []string {
	var titles []string
	for _, c := range clients.WithFiles() {
		if c.MustRoot() {
			titles = append(titles, c.Title)
		}
	}
	return titles
}

// completeClient completes the ids of clients, and directories behind them.
func completeClient(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return install.Clients(), cobra.ShellCompDirectiveDefault
}

// clientPlaces are where clients keep their files for this user.
func clientPlaces(cfg config.Config) install.Places {
	here, err := os.Getwd()
	if err != nil {
		here = "" // it is gone, so there is no project
	}
	return install.Places{GOOS: runtime.GOOS, Home: cfg.Home, Env: os.Getenv, Project: here, Command: installed(),
		State: cfg.StateDir}
}

// rootless reads the settings. The current directory is no root: a person may be anywhere.
func rootless(cmd *cobra.Command) (config.Config, error) {
	src, err := config.Process()
	if err == nil {
		src.Flags, src.UserFile, src.Rootless = given(cmd), cmd.Flag("config").Value.String(), true
		var cfg config.Config
		if cfg, _, err = config.Load(src); err == nil { // warnings are about what a server does
			return cfg, nil
		}
	}
	return config.Config{}, &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
}

// listClients prints what there is of each client.
func listClients(t *terminal, cmd *cobra.Command, f installFlags, args []string) error {
	if len(args) > 0 {
		return usage("codehand install --help", "--list takes no arguments")
	}
	cfg, err := rootless(cmd)
	if err != nil {
		return err
	}
	found := install.Look(clientPlaces(cfg))
	if f.asJSON {
		return t.printJSON(clientRows(found))
	}
	tw := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "CLIENT\tON THIS MACHINE\tCODEHAND\tFILE")
	for _, c := range found {
		here := map[bool]string{true: "yes", false: "no"}[c.Present]
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", c.Client, here, hasUs(c), printable(c.File))
	}
	return tw.Flush()
}

// hasUs says in a word whether a client's file names codehand.
func hasUs(c install.Found) string {
	switch {
	case c.Err != nil:
		return "unreadable"
	case c.Entry == nil:
		return "no"
	case !c.Entry.Ours():
		return "another program"
	case c.Entry.Disabled:
		return "disabled"
	}
	return "yes"
}

// A clientRow is what --json says of one file of a client. The environment of an entry can hold secrets and is left
// out.
type clientRow struct {
	Client   string   `json:"client"`
	Name     string   `json:"name"`
	File     string   `json:"file"`
	Project  bool     `json:"project"`
	Present  bool     `json:"present"`
	Codehand string   `json:"codehand"` // as hasUs says it
	Command  string   `json:"command,omitempty"`
	Args     []string `json:"args,omitempty"`
	URL      string   `json:"url,omitempty"`
	Error    string   `json:"error,omitempty"`
}

func clientRows(found []install.Found) []clientRow {
	var rows []clientRow
	for _, c := range found {
		r := clientRow{Client: c.Client, Name: c.Name, File: c.File, Project: c.Project, Present: c.Present,
			Codehand: hasUs(c)}
		if c.Entry != nil {
			r.Command, r.URL = c.Entry.Command, withoutQuery(c.Entry.URL)
			for _, arg := range c.Entry.Args {
				r.Args = append(r.Args, withoutQuery(arg))
			}
		}
		if c.Err != nil {
			r.Error = c.Err.Error()
		}
		rows = append(rows, r)
	}
	return rows
}

// withoutQuery masks what can be a secret of a text that is a URL: its user, its query and its fragment.
func withoutQuery(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "***"
	}
	secret := u.User != nil || u.RawQuery != "" || u.Fragment != ""
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	if secret {
		return u.String() + "?***"
	}
	return text
}

// An installer is one run of install or uninstall.
type installer struct {
	t       *terminal
	cmd     *cobra.Command
	flags   installFlags
	places  install.Places
	want    install.Want
	clients []string
	removes bool
	asks    *bufio.Reader // a person who answers; nil: there is none
	present []string      // clients that were on this machine before
	written []string      // files so far
}

// newInstaller checks all that is given before anything is read or written.
func newInstaller(t *terminal, cmd *cobra.Command, f installFlags, args []string) (*installer, error) {
	cfg, err := rootless(cmd)
	if err != nil {
		return nil, err
	}
	i := &installer{t: t, cmd: cmd, flags: f, places: clientPlaces(cfg), removes: cmd.Name() == "uninstall"}
	if isTerminal(t.in) && !f.yes {
		i.asks = bufio.NewReader(t.input(cmd.Context()))
	}
	i.want = install.Want{URL: f.remote, TokenEnv: f.tokenEnv, Project: f.project, Exclusive: f.exclusive,
		Foreign: f.yes}
	if runtime.GOOS != "windows" {
		i.want.Path = lasting(os.Getenv("PATH"), i.places.Home) // on Windows programs with windows have the user's own
	}
	i.want.Command = i.places.Command
	if !i.removes && (i.want.Command == "" || fleeting(i.want.Command, i.places.Home)) {
		return nil, &exitError{code: exitFailed, hint: lastingPlace(i.want.Command, args),
			err: errors.New("this program is in a temporary directory, where no client finds it later")}
	}
	if f.exclusive {
		i.want.Allow = readingTools()
	}
	if err := i.checkRemote(); err != nil {
		return nil, err
	}
	return i, i.readArgs(args)
}

// fleeting says whether a program will not stay: it lies in Go's cache, or in a temporary directory. What lies in the
// home directory stays as long as the files of clients there, also where that is itself temporary, as in a container.
func fleeting(program, home string) bool {
	if cache := os.Getenv("GOCACHE"); filepath.IsAbs(cache) && below(program, cache) || fromCache(program) {
		return true
	}
	temp := os.TempDir()
	ofHome := filepath.IsAbs(home) && below(home, temp) && below(program, home)
	return filepath.IsAbs(temp) && below(program, temp) && !ofHome
}

// fromCache says whether a program is one that `go run` made for one run.
func fromCache(program string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(program), "/"), func(part string) bool {
		return strings.HasPrefix(part, "go-build")
	})
}

// lasting is a PATH without directories that mean something only here and now.
func lasting(list, home string) string {
	dirs := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool {
		return !filepath.IsAbs(dir) || fleeting(dir, home)
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// below says whether a file lies somewhere in a directory, as they are named or as links lead.
func below(file, dir string) bool {
	within := func(file, dir string) bool {
		rel, err := filepath.Rel(dir, file)
		return err == nil && filepath.IsLocal(rel)
	}
	if within(file, dir) {
		return true
	}
	realFile, errFile := filepath.EvalSymlinks(file)
	realDir, errDir := filepath.EvalSymlinks(dir)
	return errFile == nil && errDir == nil && within(realFile, realDir)
}

// readingTools are the names of tools that only read.
func readingTools() []string {
	var names []string
	for _, x := range tools.All(tools.Engines{}) {
		if x.Spec.Traits.ReadOnly {
			names = append(names, x.Spec.Name)
		}
	}
	return names
}

// variableName is what an environment variable is called.
var variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// checkRemote checks the address and the name of the variable, whose value is never looked at.
func (i *installer) checkRemote() error {
	const hint = "codehand install --help"
	switch f := i.flags; {
	case f.tokenEnv != "" && f.remote == "":
		return usage(hint, "--token-env is for --remote: without it no token is needed")
	case f.tokenEnv != "" && (!variableName().MatchString(f.tokenEnv) || looksSecret(f.tokenEnv)):
		return usage(hint, "--token-env is the name of a variable, such as CODEHAND_TOKEN, and not the token")
	case f.remote == "":
		return nil
	}
	if u, err := url.Parse(i.want.URL); err == nil && u.Host != "" && strings.Trim(u.Path, "/") == "" {
		u.Path = "/mcp" // what serve prints first is its address
		i.want.URL = u.String()
	}
	o := bridge.Options{URL: i.want.URL}
	if err := o.Check(); err != nil {
		return usage(hint, "--remote: %v", err)
	}
	// Clients that send the token themselves are told of no endpoint that connect would not send it to.
	o.Token = func() string { return i.flags.tokenEnv }
	if err := o.Check(); err != nil {
		return usage(hint, "--remote: a token is not sent over http:// to another machine: use https://")
	}
	return nil
}

// lastingPlace says how the program at path gets to where it stays: one that go run built is installed, and a download
// is moved, since whoever has it may have no Go. args are those of install, to be given again.
func lastingPlace(path string, args []string) string {
	switch {
	case path == "" || fromCache(path):
		return "install codehand first: go install ./cmd/codehand"
	case runtime.GOOS == "windows":
		return `move it to a directory that stays, such as %LOCALAPPDATA%\Programs\codehand, and start it there`
	}
	return "move it to a directory that stays, and call it there:\n  mkdir -p ~/.local/bin && mv " + path +
		" ~/.local/bin/codehand\n  ~/.local/bin/codehand " + strings.Join(append([]string{"install"}, args...), " ")
}

// looksSecret says whether the user gave a token in place of the name of a variable.
func looksSecret(given string) bool {
	return strings.HasPrefix(given, "chd_") || len(secrets.Find(given)) > 0
}

// readArgs takes the clients and the directories from the arguments.
func (i *installer) readArgs(args []string) error {
	known := install.Clients()
	var roots []string
	for _, arg := range args { // in any order: ./cursor is a directory
		if slices.Contains(known, arg) {
			i.clients = append(i.clients, arg)
		} else {
			roots = append(roots, arg)
		}
	}
	args = roots
	slices.Sort(i.clients)
	i.clients = slices.Compact(i.clients)
	for _, root := range args {
		info, err := os.Stat(root)
		if err != nil || !info.IsDir() {
			return noDirectory(root, err)
		}
		if root, err = filepath.Abs(root); err != nil {
			return &exitError{code: exitFailed, err: err}
		}
		i.want.Roots = append(i.want.Roots, root)
	}
	if err := i.checkRoots(i.want.Roots); err != nil {
		return err
	}
	switch {
	case i.flags.all && len(i.clients) > 0:
		return usage("codehand install --help", "name clients, or --all, not both")
	case len(i.want.Roots) > 0 && i.flags.remote != "":
		return usage("codehand install --help", "with --remote the server knows its directories: leave out %s", args[0])
	case i.flags.all || len(i.clients) > 0:
		return nil
	}
	return i.chooseClient()
}

// noDirectory says what is wrong with an argument that is neither a client nor a directory; err is that of looking at
// it. A name without a separator was meant as a client.
func noDirectory(arg string, err error) error {
	known := install.Clients()
	switch {
	case err == nil:
		return usage("codehand install --list", "%q is no client, and a file instead of a directory", arg)
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(arg, `/\\`):
		return usage("make it first, or name another one", "there is no directory %s", arg)
	}
	return usage("codehand install --list", "%q is no client, and no directory%s", arg, didYouMean(arg, known))
}

// checkRoots refuses directories with which codehand stdio would not start, and says what it would warn of.
func (i *installer) checkRoots(roots []string) error {
	if len(roots) == 0 {
		return nil
	}
	src, err := config.Process()
	if err != nil {
		return &exitError{code: exitConfig, err: err}
	}
	src.UserFile, src.Roots = i.cmd.Flag("config").Value.String(), roots
	_, warnings, err := config.Load(src)
	if err != nil {
		return usage("codehand install --help", "a server could not work there: %v", err)
	}
	for _, w := range warnings {
		fmt.Fprintf(i.t.errs, "codehand: warning: %s\n", w)
	}
	return nil
}

// chooseClient asks a person which client is meant: of those on this machine, or for uninstall of those that name
// codehand.
func (i *installer) chooseClient() error {
	here, known, found := i.everyClient(), "on this machine", "was found on this machine"
	if i.removes {
		known, found = "that name codehand", "names codehand"
	}
	switch {
	case i.asks == nil && len(here) == 0:
		return usage("codehand install --list", "no client is named, and none %s", found)
	case i.asks == nil:
		return usage("name one, or use --all", "no client is named; clients %s: %s", known, strings.Join(here, ", "))
	case len(here) > 0:
		fmt.Fprintf(i.t.errs, "clients %s: %s\n", known, strings.Join(here, ", "))
	case i.removes:
		fmt.Fprintf(i.t.errs, "codehand: no client %s; nothing to do\n", found)
		return nil
	default:
		fmt.Fprintf(i.t.errs, "none %s of: %s\n", found, strings.Join(install.Clients(), ", "))
	}
	answer, err := i.ask("Which one? (several with spaces, or all)")
	switch {
	case err != nil:
		return err
	case answer == "" || declines(answer):
		fmt.Fprintln(i.t.errs, "codehand: nothing was changed")
		return nil
	case answer == "all":
		i.flags.all = true
		return nil
	}
	for _, client := range strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }) {
		if !slices.Contains(install.Clients(), client) {
			return usage("codehand install --list", "%q is no client%s", client, didYouMean(client, install.Clients()))
		}
		i.clients = append(i.clients, client)
	}
	return nil
}

// declines says whether an answer is a no, also to a question that wants a name.
func declines(answer string) bool {
	return slices.Contains([]string{"n", "no"}, strings.ToLower(answer))
}

// ask asks a person. The end of the input is an error.
func (i *installer) ask(question string) (string, error) {
	fmt.Fprintf(i.t.errs, "%s ", question)
	line, err := i.asks.ReadString('\n')
	if err != nil && (line == "" || !errors.Is(err, io.EOF)) {
		written := "nothing was written"
		if len(i.written) > 0 {
			written = "only this was written: " + strings.Join(i.written, ", ")
		}
		return "", &exitError{code: exitUsage, err: errors.New("not answered, so " + written)}
	}
	return strings.TrimSpace(line), nil
}

// agrees asks a question that only "y" or "yes" agrees to.
func (i *installer) agrees(question string) (bool, error) {
	answer, err := i.ask(question + " [y/N]")
	return err == nil && slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)), err
}
