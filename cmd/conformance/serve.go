//go:build conformance

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/listen"
)

// serve runs the fixture until ctx ends. It writes the URL to out once it listens. Its state lives in a directory that
// is removed at the end, and it looks at no configuration of the user's.
func serve(ctx context.Context, address string, out, errs io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "codehand-conformance-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg, _, err := config.Load(config.Sources{
		Roots: []string{dir}, WorkDir: dir, Home: dir,
		Flags: map[string]string{"http-listen": address, "sandbox-policy": "off", "audit-dir": dir + "/audit"},
		Env:   []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + dir},
	})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(errs, nil))
	s, err := server.New(server.Options{Extend: extend, Options: engines.Options{
		Config: cfg, Version: "conformance", Log: log, Serve: true,
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ls, err := listen.Open(ctx, cfg, listen.Options{Log: log})
	if err != nil {
		return err
	}
	for _, l := range ls {
		fmt.Fprintf(out, "%s/mcp\n", l.URL)
	}
	return s.HTTP(ctx, ls)
}

// extend gives mcp-go what the suite asks for, as an author of a server who knows mcp-go only would. Resource
// subscriptions and sampling are served by this program alone.
func extend(m *mcpserver.MCPServer) {
	mcpserver.WithResourceCapabilities(true, true)(m)
	m.EnableSampling()
	f := &fixture{mcp: m, key: make([]byte, 32)}
	_, _ = rand.Read(f.key) // never fails
	f.contentTools()
	f.noteTools()
	f.questionTools()
	f.schemaTools()
	f.resources()
	f.prompts()
}

// A fixture holds what the handlers share.
type fixture struct {
	mcp *mcpserver.MCPServer
	key []byte // signs request states
}
