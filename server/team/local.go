package team

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"codehand/server/audit"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/pipeline"
)

// A Local is the record of calls of a process for one person. There is one if the operator named audit.dir.
type Local struct {
	log    *audit.Log
	refuse bool // calls, while nothing can be written; else the log says once that nothing is
	warned sync.Once
	out    *slog.Logger
}

// OpenLocal returns nil if the settings ask for no record.
func OpenLocal(cfg config.Config, version string, out *slog.Logger) (*Local, error) {
	if cfg.Audit.Dir == "" {
		return nil, nil
	}
	if cfg.Audit.Dir == "-" {
		return nil, &config.Unusable{Err: errors.New("audit.dir: \"-\" is standard output, which belongs to the " +
			"protocol here; name a directory")}
	}
	log, err := audit.Open(audit.Options{
		Dir: cfg.Audit.Dir, Replica: "r" + strings.ToLower(rand.Text()[:8]), Node: cfg.Cluster.Node,
		Sync: cfg.Audit.Sync, Rotate: cfg.Audit.Rotate, Keep: cfg.Audit.Keep,
		Digest: cfg.Audit.Commands == "digest", Start: map[string]any{"version": version, "auth": auth.ModeNone},
		Log: out,
	})
	if err != nil {
		return nil, &config.Unusable{Err: fmt.Errorf("audit.dir: %w", err)}
	}
	// By default a failure is logged and calls go on, since one person is at the desk; settings can demand more.
	refuse := cfg.Audit.OnError == "refuse" && cfg.Origin("audit.on_error") != "default"
	return &Local{log: log, refuse: refuse, out: out}, nil
}

// Write takes a call into the record.
func (a *Local) Write(r pipeline.Record) error {
	err := a.log.Call(r)
	if err == nil || a.refuse {
		return err
	}
	a.warned.Do(func() { a.out.Warn("the audit log cannot be written; calls go on without it", "err", err) })
	return nil
}

// Ready says whether calls can be recorded.
func (a *Local) Ready() error {
	if a.refuse {
		return a.log.Failed()
	}
	return nil
}

// Close closes the record. a may be nil.
func (a *Local) Close() error {
	if a == nil {
		return nil
	}
	return a.log.Close()
}

// Event takes what is no call into the record.
func (a *Local) Event(ev string, fields map[string]any) {
	_ = a.log.Event(ev, fields) // the next call says that it fails
}
