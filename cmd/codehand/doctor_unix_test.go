//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/doctor"
)

// examine runs doctor, and returns its findings and its exit code.
func examine(t *testing.T, env []string, args ...string) (found []doctor.Finding, code int) {
	t.Helper()
	cmd := program(t, env, append([]string{"doctor", "--json"}, args...)...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
		err = nil
	}
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	if err != nil {
		t.Fatalf("doctor %q: %v\n%s", args, err, out)
	}
	return found, code
}

// said returns the findings of an id as lines, each with its level.
func said(found []doctor.Finding, id string) string {
	var b strings.Builder
	for _, f := range found {
		if f.ID == id {
			b.WriteString(string(f.Level) + " " + f.Text + "\n")
		}
	}
	return b.String()
}

// TestDoctorEndpoint: a server without tokens and one with them is checked from outside, and what doctor says of a
// missing and of a wrong token helps.
func TestDoctorEndpoint(t *testing.T) {
	t.Parallel()
	env := environment(t)
	s := start(t, env, "--listen", "127.0.0.1:0")
	at := "--url=" + s.url + "/mcp"
	found, code := examine(t, env, at, "--strict")
	for _, want := range []string{"ok /healthz answers\n", "ok /readyz answers\n", "ok without a token: served, on this machine",
		"ok a foreign Origin: 403\n", "ok a foreign Host: 403\n", "ok legacy: ", "ok modern: "} {
		if code != exitDone || !strings.Contains(said(found, "url"), want) {
			t.Errorf("no tokens: exit code %d, no %q in\n%s", code, want, said(found, "url"))
		}
	}
	if said(found, "oauth") != "ok no OAuth, and no document that says so\n" || said(found, "clock") != "ok both clocks agree\n" {
		t.Errorf("%+v", found)
	}
	if found, _ = examine(t, env); !strings.Contains(said(found, "store"), "a server uses it (process ") {
		t.Errorf("while it is served: %s", said(found, "store"))
	}
	_ = s.cmd.Process.Kill()
	s.exit()

	token, err := program(t, env, "token", "new", "alice").Output()
	if err != nil {
		t.Fatal(err)
	}
	s = start(t, env, "--listen", "127.0.0.1:0", ".")
	at = "--url=" + s.url + "/mcp"
	found, code = examine(t, env, at)
	if code != exitDone || !strings.Contains(said(found, "url"), "ok without a token: 401\n") ||
		!strings.Contains(said(found, "url"), "note a token is needed") {
		t.Errorf("without a token: exit code %d\n%s", code, said(found, "url"))
	}
	if found, code = examine(t, append([]string{"TOKEN=wrong"}, env...), at, "--token-env=TOKEN"); code != exitFailed ||
		!strings.Contains(said(found, "url"), "FAIL legacy: the token is not accepted") {
		t.Errorf("with a wrong token: exit code %d\n%s", code, said(found, "url"))
	}
	if found, code = examine(t, append([]string{"TOKEN=" + strings.TrimSpace(string(token))}, env...), at,
		"--token-env=TOKEN", "--strict"); code != exitDone || !strings.Contains(said(found, "url"), "ok modern: ") {
		t.Errorf("with the token: exit code %d\n%s", code, said(found, "url"))
	}
}

// TestDoctorFewFiles: a limit that was set before the client started is seen, and gone when it is raised as doctor
// says.
func TestDoctorFewFiles(t *testing.T) {
	t.Parallel()
	env := environment(t)
	exe, err := exec.LookPath("codehand")
	if err != nil {
		t.Fatal(err)
	}
	for limit, level := range map[string]string{"256": "warn 256 open files", "1024": "ok 1024 open files"} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "ulimit -n "+limit+` && exec "$0" doctor --json`, exe)
		cmd.Env, cmd.Dir = env, filepath.Join(strings.TrimPrefix(env[len(env)-1], "PWD="))
		out, err := cmd.Output()
		var found []doctor.Finding
		if err == nil {
			err = json.Unmarshal(out, &found)
		}
		if err != nil || !strings.HasPrefix(said(found, "limits"), level) {
			t.Errorf("with %s: %v\n%s", limit, err, said(found, "limits"))
		}
	}
}
