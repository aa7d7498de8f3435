package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"codehand/filestate/leaktest"
)

// TestMain also is the program, when scripts and other tests start the copy of the test binary that testscript.Main makes.
func TestMain(m *testing.M) {
	var guarded testscript.TestingM = m
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") != "codehand" {
		guarded = leaktest.Begin(m)
	}
	testscript.Main(guarded, map[string]func(){
		"codehand": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the program as a person at a shell does: arguments, output, exit codes.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			for _, dir := range []string{"home", "state", "ws"} {
				if err := os.MkdirAll(e.WorkDir+"/"+dir, 0o700); err != nil {
					return err
				}
			}
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// exits CODE COMMAND… runs a command that must end with this code.
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
				}
				err := ts.Exec(args[1], args[2:]...)
				if got := exitCode(err); got != args[0] {
					ts.Fatalf("exit code %s, want %s (%v)", got, args[0], err)
				}
			},
			// change NAME puts the id of the change that the last command's output begins with into the environment.
			"change": func(ts *testscript.TestScript, neg bool, args []string) {
				id, _, ok := strings.Cut(ts.ReadFile("stdout"), " ")
				if neg || len(args) != 1 || !ok {
					ts.Fatalf("usage: change NAME, after a command that lists changes")
				}
				ts.Setenv(args[0], id)
			},
			// steady FILE writes the last command's output into a file, without what is new in each run.
			"steady": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 1 {
					ts.Fatalf("usage: steady FILE")
				}
				temp := regexp.QuoteMeta(ts.Getenv("TMPDIR")) // may have blanks in it
				text := regexp.MustCompile(`(?:`+temp+`|\S*)[/\\]codehand-try-\d+`).ReplaceAllString(ts.ReadFile("stdout"), "SCRATCH")
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(unstable(text)), 0o600))
			},
			// empty DIR... fails for a directory that has anything in it.
			"empty": func(ts *testscript.TestScript, neg bool, args []string) {
				for _, dir := range args {
					found, err := os.ReadDir(ts.MkAbs(dir))
					if ts.Check(err); len(found) > 0 || neg {
						ts.Fatalf("%s has %v", dir, found)
					}
				}
			},
			// revoke FILE revokes the token whose text is in a file.
			"revoke": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 1 {
					ts.Fatalf("usage: revoke FILE")
				}
				ts.Check(ts.Exec("codehand", "token", "revoke", strings.TrimSpace(ts.ReadFile(args[0]))))
			},
		},
	})
}

// unstable masks what is new in each run of a session: ids and times of changes.
func unstable(session string) string {
	session = regexp.MustCompile(`\b[a-z2-7]{16}\b`).ReplaceAllString(session, "ID")
	return regexp.MustCompile(`ID (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d`).ReplaceAllString(session, "ID TIME")
}

func exitCode(err error) string {
	if err == nil {
		return "0"
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return strconv.Itoa(exit.ExitCode())
	}
	return err.Error()
}
