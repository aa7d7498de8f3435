package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"codehand/filestate"
	"codehand/filestate/lock"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/pipeline"
	"codehand/server/state"
	"codehand/tools/hooks"
	"codehand/tools/media"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/search"
	"codehand/tools/session"
	"codehand/tools/settings"
	"codehand/tools/shell"
	"codehand/tools/skills"
)

// storeTime bounds one operation of the Store with its retries.
const storeTime = 2 * time.Second

// engines are what all sessions of a process share.
type engines struct {
	dir     string // state directory
	store   state.Store
	durable bool // the store outlives the process
	locker  lock.Locker
	held    *filestate.Contents
	kept    *journals
	search  *search.Engine
	broken  *settings.Checker
	media   *media.Reader
	hooks   *hooks.Runner
	keeps   *retention
	tasks   taskLists
}

// assemble makes everything below this room, in the order in which one thing needs another. It is the only place that
// does.
func (s *Server) assemble(o Options) (err error) {
	cfg := o.Config
	e := &engines{}
	s.engines = e
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if e.dir, err = config.OpenState(cfg.StateDir); err != nil {
		return err
	}
	if e.durable = o.Serve; o.Serve {
		if e.store, err = state.Open(context.Background(), cfg.Store.URL, state.Options{
			Dir: e.dir, Timeout: cmp.Or(o.storeTime, storeTime), SessionLife: cfg.Session.TTL, MaxBytes: cfg.Store.MaxBytes, Sync: cfg.Store.Sync,
		}); err != nil {
			return err
		}
		if stats, ok := e.store.(state.Stater); ok && stats.Stats().Cut > 0 {
			s.log.Warn("the end of the state's log was cut off: half-written or never synced", "bytes", stats.Stats().Cut)
		}
		s.noShell = noShellReason(cfg)
	} else {
		e.store = state.NewMemory(state.MemoryOptions{})
	}
	e.locker = lock.New(filepath.Join(e.dir, "locks"))
	e.held = filestate.NewContents(0)
	e.kept = newJournals(e.dir, e.locker, cfg, s.log)
	e.search = search.New(search.Options{
		Workers: cfg.Search.Workers, Outside: cfg.Search.OutsideIgnores == "auto",
		Home: cfg.Home, ConfigHome: cfg.ConfigHome,
	})
	e.media = media.New(media.Options{Fit: media.FitOptions{MaxEdge: cfg.Read.ImageMaxEdge}, Temp: filepath.Join(e.dir, "pdf")})
	e.broken = settings.New(cfg.Check)
	if s.local, err = s.localPlace(); err != nil {
		return err
	}
	e.keeps = newRetention(e.dir, cfg.Results, s.log)
	s.sessions = newSessions(s.build)
	s.sessions.after, s.sessions.most = cfg.Session.Idle, cfg.Session.Max
	s.pipe = &pipeline.Pipeline{
		AskFallback: cfg.Permissions.AskFallback,
		Parallel:    cfg.Tools.MaxParallel, Record: o.Record, Log: s.log,
	}
	if err := s.useHooks(cfg); err != nil {
		return err
	}
	if o.Serve {
		if s.team, err = s.newTeam(context.Background(), o); err != nil {
			return err
		}
		s.team.watch(s, o.Version)
		s.pipe.Audit, s.pipe.AuditReady, s.pipe.Record = s.team.write, s.team.ready, s.team.record
	} else {
		if s.audit, err = s.openLocalAudit(cfg, o.Version); err != nil {
			return err
		}
		if s.audit != nil {
			s.pipe.Audit, s.pipe.AuditReady = s.audit.write, s.audit.ready
		}
	}
	s.asks = newAsker(e.store, cfg.Permissions.AskTimeout)
	s.pipe.Ask = s.ask
	return nil
}

func (e *engines) close() error {
	if e.keeps != nil {
		e.keeps.close()
	}
	if e.hooks != nil {
		e.hooks.Close()
	}
	var errs []error
	if e.kept != nil {
		errs = append(errs, e.kept.close())
	}
	if e.search != nil {
		errs = append(errs, e.search.Close())
	}
	if e.store != nil {
		errs = append(errs, e.store.Close())
	}
	return errors.Join(errs...)
}

// build opens the handles of one session. Its directory lies below that of its principal; both are named by hashes,
// because keys are free text.
func (s *Server) build(key session.Key, at *place) (*session.State, func(), error) {
	e := s.engines
	principal, name := state.Hash(key.Principal), state.Hash(key.Session)
	memory := s.memory(key)
	journal, err := e.kept.of(journalOf(key.Principal))
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(e.dir, sessionsDir, principal[:16], name[:16])
	jobs, kept := filepath.Join(dir, "jobs"), filepath.Join(dir, "tool-results")
	stopSnapshot := s.resume(key, dir, at.start, memory)
	sh, err := shell.New(shell.Options{Dir: jobs, Board: memory, Init: s.cfg.Shell.InitFile, Env: at.env(), Hurried: s.hurried.Load})
	if err != nil && at.prefs.NoShell == "" {
		stopSnapshot()
		return nil, nil, fmt.Errorf("shell of a session: %w", err)
	}
	st := &session.State{
		Key:    key,
		Shared: strings.HasPrefix(key.Session, kindWorkspace),
		Space:  at.space.Readable(jobs, kept),
		Files: filestate.New(filestate.Options{
			Memory: memory, Locker: e.locker, Contents: e.held, Journal: journal, Fast: s.cfg.Write.Durability == "fast",
		}),
		Rules:    at.rules,
		Clean:    at.clean,
		Search:   e.search,
		Settings: e.broken,
		Shell:    sh,
		Results:  results.New(kept),
		Media:    e.media,
		Prefs:    at.prefs,
		Start:    at.start,
		Highest:  at.highest,
		Mode:     session.NewCell[permission.Mode](memory, modeCell),
		Cwd:      session.NewCell[string](memory, "cell.cwd"),
		Plan:     session.NewCell[session.Plan](memory, planCell),
		Grants:   session.NewCell[[]permission.Grant](memory, grantsCell),
		Declines: session.NewCell[session.Declines](memory, "cell.declines"),
		Cursors:  session.NewCell[map[string]session.Cursor](memory, "cell.cursors"),
		Active:   session.NewCell[[]string](memory, activeCell),
		Todos:    session.NewCell[[]session.Todo](memory, "cell.todos"),
		Choices:  session.NewCell[session.Choices](memory, "cell.choices"),
		Loaded:   session.NewCell[map[string]string](memory, "cell.loaded"),
		Skills:   at.bare.Skills,     // of all sessions of the place: a copy each would be most of what a session holds
		Catalog:  at.unasked.catalog, // a call says whether its client can be asked
		Tasks:    s.tasks(at, memory),
	}
	st.SkillDirs = at.skillDirs
	st.Plans, st.PlanFallback = s.plans(at), s.cfg.Plan.ApprovalFallback
	return st, func() {
		if sh != nil {
			_ = sh.Close() // what could not be ended was logged there; nobody is left to be told
		}
		stopSnapshot()
	}, nil
}

// plans is where the plan files of a place's sessions are: where the operator wants them, if that lies in its roots.
func (s *Server) plans(at *place) string {
	own := filepath.Join(s.engines.dir, "plans")
	dir := s.cfg.Plan.Directory
	switch {
	case dir == "":
		return own
	case at.space.Inside(dir):
		return dir
	}
	s.log.Warn("plan.directory lies in no root here: plans go to the state directory", "directory", dir, "principal", at.who.ID)
	return own
}

// skillDirs are the directories of skills that are not in the workspace, the one that wins a clash first. Those of the
// home directory are of the person who started this process, and of nobody else who signs in.
func (s *Server) skillDirs(who auth.Principal) []skills.Dir {
	var dirs []skills.Dir
	for _, dir := range s.cfg.Skills.Dirs {
		dirs = append(dirs, skills.Dir{Path: dir, Trust: skills.Operator})
	}
	if who.Via != modeNone {
		return dirs
	}
	if base := s.cfg.ConfigHome; filepath.IsAbs(base) {
		dirs = append(dirs, skills.Dir{Path: filepath.Join(base, "codehand", "skills"), Trust: skills.User})
	}
	if home := s.cfg.Home; filepath.IsAbs(home) {
		dirs = append(dirs,
			skills.Dir{Path: filepath.Join(home, ".claude", "skills"), Trust: skills.User},
			skills.Dir{Path: filepath.Join(home, ".claude", "commands"), Trust: skills.User, Flat: true})
	}
	return dirs
}

// prefs are the settings that tools read.
func prefs(c config.Config) session.Prefs {
	return session.Prefs{
		ReadDedup:         c.Read.Dedup == "once",
		ReadVersion:       c.Read.Version == "always",
		ReadMaxTokens:     c.Read.MaxTokens,
		ReadMaxLine:       c.Read.MaxLine,
		ReadPipe:          c.Read.LineFormat == "pipe",
		EditRelaxed:       c.Edit.Guard == "relaxed",
		EditMarkers:       c.Edit.Desanitize,
		ListLimit:         c.List.Limit,
		ListGitignore:     c.List.Gitignore,
		ListTimeoutMS:     c.List.TimeoutMS,
		GrepMode:          c.Grep.DefaultMode,
		GrepTimeoutMS:     c.Grep.TimeoutMS,
		ShellDefaultMS:    c.Shell.DefaultTimeoutMS,
		ShellMaxMS:        c.Shell.MaxTimeoutMS,
		ShellBackgroundMS: c.Shell.AutoBackgroundMS,
		NoPDF:             noPDFReason(c),
		SkillShell:        c.Skills.AllowShell,
		ManagedRules:      c.Permissions.ManagedRulesOnly,
	}
}

// noPDFReason says who switched off that PDF files are read; "": nobody.
func noPDFReason(c config.Config) string {
	switch {
	case c.Read.PDF:
		return ""
	case c.OfProject(c.Origin("read.pdf")):
		return "a project file switched that off (read.pdf)"
	}
	return "the operator switched that off (read.pdf)"
}
