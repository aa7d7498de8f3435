package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/auth"
	"codehand/server/config"
)

// TestTokenOfNoService: a token made without --config was not known to the service of the packages, which said nothing
// but that it was wrong.
func TestTokenOfNoService(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	service := filepath.Join(dir, "config.toml")
	at := tokenPlace{cfg: config.Config{HTTP: config.HTTP{DataDir: filepath.Join(dir, "data")}}}
	tell := func() string {
		var errs bytes.Buffer
		tellService(&errs, at, auth.Token{Principal: "alice"}, service)
		return errs.String()
	}
	if got := tell(); got != "" {
		t.Errorf("without a service: %s", got)
	}
	if err := os.WriteFile(service, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tell(); !strings.Contains(got, "token new alice --config "+service) || !strings.Contains(got, at.cfg.TokenFile()) {
		t.Errorf("with a service whose file was not read: %q", got)
	}
	at.cfg.Files = []string{service}
	if got := tell(); got != "" {
		t.Errorf("made for the service: %s", got)
	}
}
