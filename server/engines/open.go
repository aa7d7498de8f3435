package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"codehand/filestate"
	"codehand/filestate/lock"
	"codehand/server/config"
	"codehand/server/nodes"
	"codehand/server/sessions"
	"codehand/server/state"
	"codehand/server/toolset"
	"codehand/tools"
	"codehand/tools/agent"
	"codehand/tools/credentials"
	"codehand/tools/git/changes"
	"codehand/tools/hooks"
	"codehand/tools/media"
	"codehand/tools/search"
	"codehand/tools/session"
	"codehand/tools/settings"
	"codehand/tools/tool"
)

// StoreTime bounds one operation of the Store with its retries.
const StoreTime = 2 * time.Second

// A Set is the engines of a process, which all its sessions share. Close gives back what they hold.
type Set struct {
	Dir      string       // state directory
	Kept     string       // directory of journals and answers: Dir, or one that all nodes share
	Store    state.Store  // set anew once, before the first session: by what counts its operations
	Durable  bool         // the Store outlives the process
	Nodes    *nodes.Nodes // that share the Store; nil: this process has it alone
	Locker   lock.Locker
	Contents *filestate.Contents
	Journals *sessions.Journals
	Search   *search.Engine
	Settings *settings.Checker
	Media    *media.Reader
	Hooks    *hooks.Runner
	Around   bool // some hooks run around calls, and not only the classifier
	Confined *Confinement
	Language session.Languages // but for what depends on the tenant
	Tools    *toolset.Set
	tools.Engines
}

// Open makes the engines, in the order in which one needs another. local is what the person has whose process it is,
// once that is known. Nothing is left open after an error.
func Open(o Options, local func() Local) (e *Set, err error) {
	cfg := o.Config
	e = &Set{Durable: o.Serve}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if e.Dir, err = config.OpenState(cfg.StateDir); err != nil {
		return e, err
	}
	volume := cfg.Cluster.Volume()
	if volume != "" && (o.Serve || o.Principal) {
		if volume, err = config.OpenState(volume); err != nil {
			return e, fmt.Errorf("cluster.shared_dir: %w", err)
		}
		e.Kept = volume
	}
	e.Kept = cmp.Or(e.Kept, e.Dir)
	if e.Store, e.Nodes, err = openStore(o, e.Dir, volume); err != nil {
		return e, err
	}
	e.Locker = lock.New(filepath.Join(e.Dir, "locks"))
	e.Contents = filestate.NewContents(0)
	e.Journals = sessions.NewJournals(e.Kept, e.Locker, cfg, o.Log)
	if e.Nodes != nil && e.Kept != e.Dir {
		e.Nodes.OnTaken(e.Journals.Take)
	} else {
		e.Journals.Recover()
	}
	e.Search = search.New(search.Options{
		Workers: cfg.Search.Workers, Outside: cfg.Search.OutsideIgnores == "auto",
		Home: cfg.Home, ConfigHome: cfg.ConfigHome, Memory: cfg.Search.Memory,
	})
	e.Confined = o.confinement(e.Dir, o.Proven)
	if err := e.Confined.checkApart(); err != nil {
		return e, err
	}
	e.Media = media.New(media.Options{Fit: media.FitOptions{MaxEdge: cfg.Read.ImageMaxEdge},
		Temp: filepath.Join(e.Dir, "pdf"), Level: e.Confined.Options.Level})
	if cfg.Journal.Shell {
		e.Trees = changes.New(cfg.Home, cfg.ConfigHome)
	}
	e.Settings = settings.New(cfg.Check)
	if e.Hooks, e.Around, err = o.hooks(); err != nil {
		return e, err
	}
	e.Language = o.languages(e.Dir)
	return e, e.makeTools(o, local)
}

// openStore opens the Store of serve, or makes that of a process for one person. volume is what all nodes share; "":
// nothing.
func openStore(o Options, dir, volume string) (state.Store, *nodes.Nodes, error) {
	if !o.Serve {
		return state.NewMemory(state.MemoryOptions{}), nil, nil
	}
	cfg := o.Config
	with := cfg.StoreOptions()
	with.Dir, with.Timeout = dir, cmp.Or(o.StoreTime, StoreTime)
	store, err := state.Open(context.Background(), cfg.Store.URL, with)
	if err != nil {
		return nil, nil, err
	}
	if stats, ok := store.(state.Stater); ok && stats.Stats().Cut > 0 {
		o.Log.Warn("truncated the end of the state log: it was half-written or never synced",
			"bytes", stats.Stats().Cut)
	}
	if cfg.Cluster.Node == "" {
		return store, nil, nil
	}
	all, err := nodes.Join(context.Background(), nodes.Options{
		Store: store, Name: cfg.Cluster.Node, Version: o.Version, Capacity: cfg.Cluster.Capacity,
		Shared: volume != "", Volume: volume, Log: o.Log,
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("store %s: %w", cfg.Store.URL, err), store.Close())
	}
	return all.Store(), all, nil
}

// makeTools makes the engines that tools are handed, and the tools.
func (e *Set) makeTools(o Options, local func() Local) (err error) {
	if e.Web, err = o.web(); err != nil {
		return err
	}
	if e.WebSearch, err = o.webSearch(); err != nil {
		return err
	}
	e.Past = o.Past
	e.Mounts = o.mounts(e, local)
	all := func() []tool.Tool { return e.Tools.All() }
	roots := func() []string { return local().Roots }
	if e.Agents, err = o.agents(handed{model: o.Model, tools: all, roots: roots}); err != nil {
		return err
	}
	var own []tool.Tool
	if o.Tools != nil {
		own = limitReports(o.Tools(e.Engines), o.Config.Tools.Agent.MaxOutput)
	}
	sources := append([]toolset.Source{toolset.Fixed(own)}, o.Sources...)
	if e.Mounts != nil {
		sources = append(sources, e.Mounts)
	}
	e.Tools, err = toolset.New(toolset.Lists{Deferral: o.Config.Tools.Deferral, Always: o.Config.Tools.Always},
		sources...)
	return err
}

// limitReports gives the tools that return reports of sub-agents as many characters as agent.max_output says.
func limitReports(tools []tool.Tool, most int) []tool.Tool {
	limited := slices.Clone(tools)
	for i, t := range limited {
		if most > 0 && t.Spec.Reports {
			limited[i] = t.Limited(most)
		}
	}
	return limited
}

// MayAsk says whether something may ask the clients of calls while these work.
func (e *Set) MayAsk(cfg config.Config) bool {
	asks := e.Confined.Options.Credentials == credentials.Ask
	return e.Mounts != nil || cfg.Web.Sampling || asks || e.Agents.InForce(true) != agent.None
}

// Memory is the part of the Store that one session has.
func (e *Set) Memory(key session.Key) state.Store {
	return state.Scoped(e.Store, "sess."+state.Hash(key.Principal)+"."+state.Hash(key.Session))
}

// Cells is Memory for what keeps cells alone.
func (e *Set) Cells(key session.Key) session.Memory { return e.Memory(key) }

// ActiveCell names the value in which a session keeps the tools that it found.
const ActiveCell = "cell.active"

// Active is what a session has found, without opening it: nothing begins because a client lists.
func (e *Set) Active(key session.Key) session.Cell[[]string] {
	return session.NewCell[[]string](e.Memory(key), ActiveCell)
}

// Holds returns what says whether this process may change what is a principal's: nil, or a refusal. nil: it always may.
func (e *Set) Holds(principal string) func() error {
	holds := e.Nodes.Holds(principal)
	if holds == nil {
		return nil
	}
	return func() error {
		err := holds()
		if err == nil {
			return nil
		}
		return &tool.Refusal{Code: tool.StateUnavailable, Cause: err, Text: "This machine lost touch with the " +
			"others, and another one may serve you now. Nothing was changed by this call. Try again."}
	}
}

// Close gives back what the engines hold. What was never made has nothing.
func (e *Set) Close() error {
	if e.Agents != nil {
		e.Agents.Close()
	}
	e.Mounts.Close()
	e.Language.LSP.Close()
	if e.Hooks != nil {
		e.Hooks.Close()
	}
	e.Confined.Close()
	var errs []error
	if e.Journals != nil {
		errs = append(errs, e.Journals.Close())
	}
	if e.Search != nil {
		errs = append(errs, e.Search.Close())
	}
	if e.Trees != nil {
		e.Trees.Close()
	}
	if e.Nodes != nil {
		e.Nodes.Close()
	}
	if e.Store != nil {
		errs = append(errs, e.Store.Close())
	}
	return errors.Join(errs...)
}
