package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/config"
)

// TestServeNext holds what a person reads last: the clients of this machine, and the address.
func TestServeNext(t *testing.T) {
	home := t.TempDir()
	var said strings.Builder
	run := &serving{t: &terminal{errs: &said}, person: true, mode: "token", cfg: config.Config{Home: home}}
	run.next([]string{"unix:/run/x", "http://127.0.0.1:7433"})
	want := "\nTo connect one: codehand install CLIENT --remote http://127.0.0.1:7433/mcp --token-env CODEHAND_TOKEN\n" +
		"What to paste into any other: codehand serve --snippets\n\nServing at http://127.0.0.1:7433/mcp until Ctrl-C\n"
	if said.String() != want {
		t.Errorf("without clients: %q, want %q", said.String(), want)
	}
	if err := os.Mkdir(filepath.Join(home, ".cursor"), 0o755); err != nil {
		t.Fatal(err)
	}
	said.Reset()
	run.mode, run.snippets = "none", true
	run.next([]string{"http://127.0.0.1:7433"})
	want = "\nClients on this machine: cursor.\nTo connect one: codehand install cursor --remote " +
		"http://127.0.0.1:7433/mcp\n\nServing at http://127.0.0.1:7433/mcp until Ctrl-C\n"
	if said.String() != want {
		t.Errorf("with cursor: %q, want %q", said.String(), want)
	}
	said.Reset()
	if run.next([]string{"unix:/run/x"}); said.String() != "" {
		t.Errorf("without an address: %q", said.String())
	}
}
