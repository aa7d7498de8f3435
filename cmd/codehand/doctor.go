package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"codehand/server/audit"
	"codehand/server/config"
	"codehand/server/sessions"
	"codehand/tools/sandbox"
)

// checkLimit bounds one check.
const checkLimit = 10 * time.Second

// A finding is what a check found. Fix says what to do about anything but ok.
type finding struct {
	ID    string `json:"id"`
	Level string `json:"level"` // ok, note, warn, FAIL
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"`
}

func newDoctor(t *terminal) *cobra.Command {
	var asJSON, strict bool
	var audit string
	cmd := &cobra.Command{
		Use:   "doctor [ROOT...]",
		Short: "Check this machine and the settings",
		Long: `Check what codehand needs here: its binary, configuration, roots, state directory,
programs and hooks, the files of clients that start it, and whether it answers
clients of both protocol eras with the given settings. It also lists what each rule of
permissions covers here, with a warning where it can match nothing, and the variables of
this environment that commands do not get. Nothing is changed, except that a missing
state directory is created.

With --audit DIR check an audit log instead: every line must follow the one
before, in all files of the log. The first line that is changed, cut or missing
is named.

Exit codes: 0 no FAIL, 1 a FAIL (with --strict also a warn), 2 usage.`,
		RunE: func(cmd *cobra.Command, roots []string) error {
			var found []finding
			if cmd.Flags().Changed("audit") {
				found = []finding{checkAudit(audit)}
			} else {
				found = diagnose(cmd, roots)
			}
			if asJSON {
				enc := json.NewEncoder(t.out)
				enc.SetIndent("", "  ")
				if err := enc.Encode(found); err != nil {
					return err
				}
			} else {
				for _, f := range found {
					fmt.Fprintf(t.out, "%-4s  %-9s  %s\n", f.Level, f.ID, f.Text)
					if f.Fix != "" {
						fmt.Fprintf(t.out, "%17s-> %s\n", "", f.Fix)
					}
				}
			}
			bad := slices.ContainsFunc(found, func(f finding) bool {
				return f.Level == "FAIL" || strict && f.Level == "warn"
			})
			if bad {
				return &exitError{code: exitFailed, err: errors.New("")}
			}
			return nil
		},
	}
	localConfig(cmd, "check the configuration in `FILE`, for stdio and for serve")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	cmd.Flags().StringVar(&audit, "audit", "", "check the audit log in `DIR`, and nothing else")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings, too")
	return cmd
}

// diagnose runs all checks at the same time and returns their findings in a fixed order.
func diagnose(cmd *cobra.Command, roots []string) []finding {
	cfg, warnings, err := load(cmd, roots)
	if err != nil {
		return []finding{checkBinary(),
			{ID: "config", Level: "FAIL", Text: err.Error(), Fix: "fix the file or the setting that is named"}}
	}
	args := append([]string{"stdio"}, cfg.Roots...)
	if file := cmd.Flag("config").Value.String(); file != "" {
		args = append(args, "--config="+file)
	}
	for flag, value := range given(cmd) {
		args = append(args, flag+"="+value)
	}
	env := sync.OnceValue(func() []string {
		return sandbox.Environ(sandbox.EnvOptions{Roots: cfg.Roots, Allow: cfg.Shell.EnvAllow,
			AllowSecret: cfg.Shell.EnvAllowSecret, Personal: true})
	})
	checks := []func(context.Context) []finding{
		func(context.Context) []finding { return []finding{checkBinary()} },
		func(context.Context) []finding { return append(checkConfig(cfg, warnings), checkServe(cmd)...) },
		func(context.Context) []finding { return checkRoots(cfg) },
		func(ctx context.Context) []finding { return checkRules(ctx, cfg) },
		func(ctx context.Context) []finding { return append(checkState(cfg), checkJournal(ctx, cfg)...) },
		func(context.Context) []finding { return checkPrograms(cfg) },
		func(context.Context) []finding { return checkHooks(cfg, env()) },
		func(context.Context) []finding { return checkEnvironment(env()) },
		func(ctx context.Context) []finding { return checkClients(ctx, cfg) },
		func(context.Context) []finding {
			return []finding{{ID: "sandbox", Level: "note",
				Text: "level 1 (limits): commands run with a filtered environment, and codehand ends their whole " +
					"process tree; the kernel does not confine them",
				Fix: "use only roots whose programs you would run yourself"}}
		},
		func(ctx context.Context) []finding { return []finding{handshake(ctx, args, "legacy")} },
		func(ctx context.Context) []finding { return []finding{handshake(ctx, args, "modern")} },
	}
	all := make([][]finding, len(checks))
	var wg sync.WaitGroup
	for i, check := range checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(cmd.Context(), checkLimit)
			defer cancel()
			done := make(chan []finding, 1)
			go func() { done <- check(ctx) }() // left behind if a dead mount holds it: the process ends soon
			select {
			case all[i] = <-done:
			case <-ctx.Done():
				all[i] = []finding{{"time", "FAIL", fmt.Sprintf("check %d of %d did not end within %s", i+1,
					len(checks), checkLimit), "look for a network mount that does not answer"}}
			}
		})
	}
	wg.Wait()
	return slices.Concat(all...)
}

// checkAudit follows the chains of an audit log. It has no limit of time: a log can have gigabytes.
func checkAudit(dir string) finding {
	lines, err := audit.Check(dir)
	if damage, ok := errors.AsType[*audit.Break](err); ok {
		return finding{"audit", "FAIL", fmt.Sprintf("%v (%d lines before it are in order)", damage, lines),
			"keep the files as they are, and find out who could write to the directory"}
	}
	if err != nil {
		return finding{"audit", "FAIL", err.Error(),
			"give the directory of the log: audit.dir, or else audit in the data directory"}
	}
	return finding{"audit", "ok", fmt.Sprintf("%d lines, each follows the one before", lines), ""}
}

func checkBinary() finding {
	exe, err := os.Executable()
	if err != nil {
		return finding{"binary", "warn", "the path of this program is not known: " + err.Error(),
			"start it by its absolute path"}
	}
	f := finding{"binary", "ok", fmt.Sprintf("%s, version %s", exe, buildVersion()), ""}
	first, err := exec.LookPath("codehand")
	if err != nil {
		return f
	}
	a, errA := os.Stat(exe)
	b, errB := os.Stat(first)
	if errA == nil && errB == nil && !os.SameFile(a, b) {
		return finding{"binary", "warn", f.Text + "; PATH finds another one first: " + first,
			"give your client the absolute path of this one"}
	}
	return f
}

func checkConfig(cfg config.Config, warnings []config.Warning) []finding {
	text := "defaults; there is no configuration file"
	if len(cfg.Files) > 0 {
		text = "read " + strings.Join(cfg.Files, ", ")
	}
	out := []finding{{"config", "ok", text, ""}}
	for _, w := range warnings {
		out = append(out,
			finding{"config", "warn", w.String(),
				"a project file may only narrow what the user's file and flags allow"})
	}
	return out
}

func checkRoots(cfg config.Config) []finding {
	if len(cfg.Roots) == 0 {
		return []finding{{"roots", "warn", "there is no root, so the tools can use no file",
			"give a directory: codehand stdio /path/to/project"}}
	}
	var out []finding
	for _, r := range cfg.Roots {
		f := finding{"roots", "ok", r, ""}
		info, err := os.Stat(r)
		switch {
		case err != nil:
			f = finding{"roots", "FAIL", err.Error(), "create the directory, or give another one"}
		case !info.IsDir():
			f = finding{"roots", "FAIL", r + " is not a directory", "give a directory"}
		default:
			if _, err := os.ReadDir(r); err != nil {
				f = finding{"roots", "FAIL", err.Error(), "give this user the right to read it"}
			} else if same(r, cfg.Home) {
				f = finding{"roots", "warn", r + " is your home directory: the tools can change everything in it",
					"give a project's directory instead"}
			}
		}
		out = append(out, f)
	}
	return out
}

func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func checkState(cfg config.Config) []finding {
	dir, err := config.OpenState(cfg.StateDir)
	if err != nil {
		return []finding{{"state", "FAIL", err.Error(),
			"the directory must belong to you, have mode 0700 and be writable; or choose another one with --state-dir"}}
	}
	return checkWritable(dir)
}

// maxRecovered is how many files of the journal are named.
const maxRecovered = 5

// checkJournal names what servers that were killed left behind, and that is in no file.
func checkJournal(ctx context.Context, cfg config.Config) []finding {
	found, err := sessions.RecoveredFiles(ctx, cfg.StateDir)
	if err != nil {
		return []finding{{"journal", "warn", "the journal cannot be read: " + err.Error(),
			"check the directory journal in the state directory"}}
	}
	var out []finding
	for _, r := range found[:min(len(found), maxRecovered)] {
		out = append(out,
			finding{"journal", "note", fmt.Sprintf("a server that was killed left a version of %s, found on %s", r.Path,
				r.Time.Local().Format(time.DateTime)),
				"to see it, run in a directory above the file: codehand history --change " + r.ID})
	}
	if more := len(found) - maxRecovered; more > 0 {
		out = append(out, finding{"journal", "note", fmt.Sprintf("%d more such versions are kept", more),
			"codehand history lists them"})
	}
	return out
}

// handshake starts this program as a client would, lists its tools, and sees that it ends with its input.
func handshake(ctx context.Context, args []string, era string) finding {
	id := "handshake"
	fail := func(err error) finding {
		return finding{id, "FAIL", era + ": " + err.Error(), "run codehand stdio by hand and read its standard error"}
	}
	exe, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return fail(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	lines := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
			`"capabilities":{},"clientInfo":{"name":"codehand-doctor","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
	}
	if era == "modern" {
		const meta = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"codehand-doctor","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{}}}`
		lines = []string{
			`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":` + meta + `}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":` + meta + `}`,
		}
	}
	_, err = io.WriteString(in, strings.Join(lines, "\n")+"\n")
	tools, bytes, answered := 0, 0, time.Duration(0)
	scan := bufio.NewScanner(out)
	scan.Buffer(nil, 8<<20)
	for err == nil && tools == 0 && scan.Scan() {
		tools, bytes, err = countTools(scan.Bytes())
		answered = time.Since(start)
	}
	err = errors.Join(err, scan.Err(), in.Close())
	if _, drained := io.Copy(io.Discard, out); drained != nil {
		err = errors.Join(err, drained)
	}
	err = errors.Join(err, cmd.Wait())
	if err == nil && tools == 0 {
		err = errors.New("tools/list was not answered")
	}
	if err != nil {
		if s := strings.TrimSpace(stderr.String()); s != "" {
			err = fmt.Errorf("%w; its standard error: %s", err, s)
		}
		return fail(err)
	}
	return finding{id, "ok", fmt.Sprintf("%s: %d tools, %d tokens, in %d ms; exited cleanly", era, tools, (bytes+3)/4,
		answered.Milliseconds()), ""}
}

// countTools reads one line of the server. It returns 0 tools for every answer but that of tools/list.
func countTools(line []byte) (tools, bytes int, err error) {
	var answer struct {
		ID     int `json:"id"`
		Result struct {
			Tools []json.RawMessage `json:"tools"`
		} `json:"result"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return 0, 0, fmt.Errorf("not JSON: %.80q", line)
	}
	if answer.Error != nil {
		return 0, 0, errors.New(answer.Error.Message)
	}
	for _, t := range answer.Result.Tools {
		bytes += len(t)
	}
	return len(answer.Result.Tools), bytes, nil
}
