package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"codehand/server"
	"codehand/server/clients"
	"codehand/server/config"
	"codehand/tools"
	"codehand/tools/sandbox"
)

// checkServe says what serve would refuse in the configuration that --config names; a file that is good for stdio may
// not be for it.
func checkServe(cmd *cobra.Command) []finding {
	file := cmd.Flag("config").Value.String()
	if file == "" {
		return nil
	}
	src, err := config.Process()
	if err == nil {
		src.Flags, src.UserFile, src.Serve = given(cmd), file, true
		_, _, err = config.Load(src)
	}
	if err != nil {
		return []finding{{"config", "FAIL", "serve: " + err.Error(), "fix the file or the setting that is named"}}
	}
	return nil
}

// checkRules says what each rule covers here: one that covers something else than its author thinks guards nothing.
func checkRules(ctx context.Context, cfg config.Config) []finding {
	s, err := server.New(server.Options{Config: cfg, Tools: tools.All(), Version: buildVersion()})
	if err != nil {
		return []finding{{"rules", "FAIL", err.Error(), "fix the file or the setting that is named"}}
	}
	defer func() { _ = s.Close() }() // nothing was done that could be lost
	ctx, cancel := context.WithTimeout(ctx, checkLimit/2)
	defer cancel()
	var out []finding
	for _, r := range s.Rules(ctx) {
		f := finding{"rules", "ok", fmt.Sprintf("%s %s: %s, from %s", r.List, shown(r.Rule), covered(r),
			shown(r.Origin)), ""}
		switch {
		case r.Warning != "":
			f.Level, f.Text, f.Fix = "warn", f.Text+"; "+shown(r.Warning), r.Fix
		case r.Note != "":
			f.Level, f.Text = "note", f.Text+"; "+shown(r.Note)
		}
		out = append(out, f)
	}
	return out
}

// checkWritable looks whether files can be made in the state directory and in all that is in it: what was once made by
// sudo belongs to root.
func checkWritable(dir string) []finding {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []finding{{"state", "FAIL", err.Error(), "give this user the right to read it"}}
	}
	dirs := []string{dir}
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(dir, e.Name()))
		}
	}
	for _, d := range dirs {
		probe, err := os.CreateTemp(d, "doctor-*")
		if err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
		if err != nil {
			return []finding{{"state", "FAIL", "no file can be made in " + d + ": " + cause(err),
				"make the directory yours, free some space, or choose another one with --state-dir"}}
		}
	}
	return []finding{{"state", "ok", dir, ""}}
}

// cause is what the system said, without the names of temporary files.
func cause(err error) string {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err.Error()
	}
	return err.Error()
}

// checkPrograms looks for the programs that tools start.
func checkPrograms(cfg config.Config) []finding {
	dirs := []string{"/usr/bin", "/bin", "/usr/local/bin"}
	poppler, install := dirs, "install poppler-utils: without it read_file shows no PDF files"
	if runtime.GOOS == "darwin" {
		poppler = []string{"/opt/homebrew/bin", "/usr/local/bin", "/opt/local/bin"}
		install = strings.Replace(install, "poppler-utils", "poppler", 1)
	}
	wanted := []struct {
		names      []string
		dirs       []string
		level, fix string
	}{
		{[]string{"bash"}, dirs, "warn", "install bash: without it commands run in sh"},
		{[]string{"git"}, dirs, "note", "install git if the workspace is a repository"},
	}
	if cfg.Read.PDF {
		wanted = append(wanted, wanted[0])
		wanted[2].names, wanted[2].dirs = []string{"pdfinfo", "pdftotext", "pdftoppm"}, poppler
		wanted[2].level, wanted[2].fix = "note", install
	}
	var out []finding
	for _, p := range wanted {
		var found, missing []string
		for _, name := range p.names {
			if path := programIn(p.dirs, name); path != "" {
				found = append(found, path)
			} else {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			out = append(out, finding{"programs", p.level,
				strings.Join(missing, ", ") + " not found in " + strings.Join(p.dirs, ", "), p.fix})
			continue
		}
		out = append(out, finding{"programs", "ok", strings.Join(found, ", "), ""})
	}
	return out
}

// programIn finds a program in directories; "": it is in none.
func programIn(dirs []string, name string) string {
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); runnable(path) {
			return path
		}
	}
	return ""
}

func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0)
}

// checkEnvironment lists what commands do not get of this environment: a program that finds no login there says
// anything but that.
func checkEnvironment(env []string) []finding {
	var settable, never []string
	for _, name := range sandbox.Withheld(env) {
		if sandbox.Never(name) {
			never = append(never, name)
		} else {
			settable = append(settable, name)
		}
	}
	var out []finding
	if len(settable) > 0 {
		out = append(out, finding{"env", "note", "commands do not get: " + strings.Join(settable, ", "),
			`to pass one on: shell.env_allow = ["NAME"], or shell.env_allow_secret for one that holds a secret`})
	}
	if len(never) > 0 {
		out = append(out, finding{"env", "note", "commands never get: " + strings.Join(never, ", "),
			"set what you need of them in shell.init_file"})
	}
	return out
}

// checkHooks looks for the programs of hooks and of the classifier, as they are looked for when they run.
func checkHooks(cfg config.Config, env []string) []finding {
	path := ""
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	var out []finding
	check := func(what, origin string, command []string) {
		if len(command) == 0 {
			return
		}
		found := programIn(filepath.SplitList(path), command[0])
		if filepath.IsAbs(command[0]) {
			found = programIn([]string{""}, command[0])
		}
		if found == "" {
			out = append(out, finding{"hooks", "FAIL",
				fmt.Sprintf("%s: the program of %s cannot be run: %s", origin, what, command[0]),
				"give the absolute path of a program, and make it executable"})
		}
	}
	for _, h := range cfg.Hooks.Entries {
		check("the hook "+h.Event, h.Origin, h.Command)
	}
	check("permissions.classifier", cfg.Origin("permissions.classifier"), cfg.Permissions.Classifier)
	if n := len(cfg.Hooks.Entries); n > 0 && len(out) == 0 {
		out = append(out, finding{"hooks", "ok", fmt.Sprintf("the programs of %d hooks are there", n), ""})
	}
	return out
}

// checkClients looks into the files of clients for entries that start codehand.
func checkClients(ctx context.Context, cfg config.Config) []finding {
	here := "the absolute path of codehand"
	if at := installed(); at != "" {
		here = at
	}
	var out []finding
	var good []string
	for _, e := range clients.FindConfigured(clients.Places{Home: cfg.Home, Getenv: os.Getenv, Projects: cfg.Roots}) {
		if ctx.Err() != nil {
			return out
		}
		at := e.Client + ": " + e.File
		switch {
		case e.Err != nil:
			out = append(out, finding{"clients", "warn", at + " names codehand and cannot be read: " + e.Err.Error(),
				"fix the file; the client may ignore all of it"})
		case filepath.IsAbs(e.Command) && !runnable(e.Command):
			out = append(out, finding{"clients", "FAIL",
				at + " names " + e.Command + ", which is not there or cannot be run",
				`set "command" in it to ` + here})
		case !filepath.IsAbs(e.Command) && !onPath(e.Command):
			out = append(out, finding{"clients", "FAIL", at + " names " + e.Command + ", which is not on PATH",
				`set "command" in it to ` + here})
		case !slices.Contains(good, e.Client):
			good = append(good, e.Client)
		}
	}
	if len(good) > 0 {
		out = append(out, finding{"clients", "ok", "configured in " + strings.Join(good, ", "), ""})
	}
	return out
}

func onPath(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// installed is where clients should start this program from: its name on PATH if that is this program, since package
// managers move the file behind that name; "": not known.
func installed() string {
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	if first, err := exec.LookPath("codehand"); err == nil && filepath.IsAbs(first) && same(exe, first) {
		return first
	}
	return exe
}
