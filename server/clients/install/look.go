package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"codehand/server/clients"
	"codehand/server/clients/install/forms"
)

// Found is one client, with the file that tells it of servers, and our entry in it.
type Found struct {
	Client  string // id: claude-code
	Name    string // for people: Claude Code
	File    string // as the system writes it
	Project bool   // the file is that of Places.Project
	Present bool   // the client seems to be installed: its directory or its program is there
	Entry   *Entry // nil: the file does not name us
	// Err is why the file cannot be read, with line and column if it is a *SyntaxError; then Entry is nil. A file that
	// is not there is no error.
	Err error
}

// Entry is what a client's file says about codehand: how it starts us, or where we are.
type Entry struct {
	Name     string // its key, or its name in a list
	Command  string // the program; "": it is remote
	Args     []string
	Env      map[string]string
	Dir      string // in which the client starts it; "": the client's own, or the project
	URL      string // of a remote server; "": it is started
	Remote   bool   // URL is set
	Disabled bool   // the client is told not to use it

	known bool // it starts what Places.Command or a note names
}

// program is what a program of ours is called, also as it is released: codehand-linux-amd64.
var program = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^codehand([-_](linux|darwin|windows)[-_](amd64|arm64|all))?(\.exe)?$`)
})

// Ours says whether the entry starts a program that has our name, this very program, or the one that an install wrote
// there. A remote entry is ours by its name alone.
func (e Entry) Ours() bool {
	base := path.Base(strings.ReplaceAll(e.Command, `\`, "/"))
	return e.known || e.Remote && e.Name == forms.Name || program().MatchString(base)
}

// recognize notes that an entry is ours whatever its program is called.
func (p Places) recognize(e *Entry, notes []note) {
	if e == nil || e.Command == "" {
		return
	}
	e.known = e.Command == p.Command || e.Command == lastOf(notes).Command
	if p.Command == "" || !p.isAbs(e.Command) {
		return
	}
	x, err := os.Stat(p.real(e.Command))
	if y, errY := os.Stat(p.real(p.Command)); err == nil && errY == nil && os.SameFile(x, y) {
		e.known = true
	}
}

// Clients are the ids of all clients, in the order of Look.
func Clients() []string {
	var all []string
	for _, c := range clients.WithFiles() {
		all = append(all, c.ID)
	}
	return all
}

// Look says of every client whether it is here and whether its file names us, in a fixed order. Behind a client stands
// a second row for its file in the project, and a third for one that must say the same as its own, if those are there
// and name us or cannot be read. Nothing is changed, and no program is started.
func Look(p Places) []Found {
	var all []Found
	notes, err := readNotes(p.State)
	if err != nil {
		notes = nil // Plan says it; here they only help to know an entry
	}
	for _, s := range clients.Local(clients.Launch{}) {
		f := Found{Client: s.ID, Name: s.Title, Present: p.present(s)}
		user := f
		user.File = p.first(s, p.userFiles(s))
		user.Entry, user.Err = p.entry(user.File, s, notes)
		all = append(all, user)
		others := p.projectFiles(s)
		for i, at := range append(others, p.expand(s.Twin.On(p.GOOS))) {
			if at == user.File { // the project is the home directory
				continue
			}
			other := f
			other.File, other.Project = at, i < len(others)
			if other.Entry, other.Err = p.entry(at, s, notes); other.Entry != nil || other.Err != nil {
				all = append(all, other)
			}
		}
	}
	return all
}

// present says whether a client's directory or its program is there.
func (p Places) present(s clients.Snippet) bool {
	for _, at := range p.userFiles(s) {
		// The home directory and that of all settings are nobody's own.
		if dir := p.dir(at); p.exists(at) || dir != p.join(p.Home) && p.exists(dir) {
			return true
		}
	}
	settings := p.exclusiveFile(s.ID, false) // lies in a directory of its own, beside no file of servers
	for _, beside := range []string{p.expand(s.Twin.On(p.GOOS)), settings} {
		if beside != "" && p.exists(p.dir(beside)) {
			return true
		}
	}
	list, suffixes := ":", []string{""}
	if p.GOOS == "windows" {
		list, suffixes = ";", []string{".exe", ".cmd"}
	}
	for _, dir := range strings.Split(p.Env("PATH"), list) {
		for _, called := range s.Programs {
			for _, suffix := range suffixes {
				info, err := os.Stat(p.real(p.join(dir, called+suffix)))
				if p.isAbs(dir) && err == nil && info.Mode().IsRegular() &&
					(p.GOOS == "windows" || info.Mode().Perm()&0o111 != 0) {
					return true
				}
			}
		}
	}
	return false
}

// entry reads our entry of a file; nil: there is none, or no file.
func (p Places) entry(shown string, s clients.Snippet, notes map[string][]note) (*Entry, error) {
	if shown == "" {
		return nil, nil
	}
	r, err := p.read(shown)
	if err != nil {
		return nil, err
	}
	want, err := forms.For(shown).Decode([]byte(s.Text))
	if err != nil {
		return nil, err
	}
	e := entryIn(r.tree, forms.Container(want))
	p.recognize(e, notes[shown])
	return e, nil
}

// maxFile is how much of a client's file is read, in bytes: some keep their history beside their settings.
const maxFile = 32 << 20

// readFile reads a regular file. Both are nil if there is none.
func readFile(file string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(file); err == nil {
			return nil, nil, errors.New("is a link that leads nowhere")
		}
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("is no regular file")
	}
	if info.Size() > maxFile {
		return nil, nil, fmt.Errorf("has %d bytes, at most %d are read", info.Size(), maxFile)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, cause(err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, info, nil
}

// cause is what the system said, without a path that the caller names in its own way.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// entryIn finds our entry below the container: that of our name, else one that starts our program.
func entryIn(tree any, container string) *Entry {
	top, _ := tree.(map[string]any)
	var named, started *Entry
	look := func(key string, v any) {
		table, ok := v.(map[string]any)
		if !ok {
			return
		}
		e := readEntry(key, table)
		if key == forms.Name && named == nil {
			named = &e
		} else if e.Ours() && started == nil {
			started = &e
		}
	}
	switch servers := top[container].(type) {
	case map[string]any:
		for _, key := range sortedKeys(servers) {
			look(key, servers[key])
		}
	case []any:
		for _, item := range servers {
			table, _ := item.(map[string]any)
			key, _ := table["name"].(string)
			look(key, item)
		}
	}
	if named != nil {
		return named
	}
	return started
}

// readEntry reads an entry in any client's spelling.
func readEntry(key string, table map[string]any) Entry {
	e := Entry{Name: key}
	text := func(keys ...string) string {
		for _, k := range keys {
			if s, ok := table[k].(string); ok && s != "" {
				return s
			}
		}
		return ""
	}
	e.Command, e.Dir = text("command", "cmd"), text("cwd")
	e.URL = text("url", "serverUrl", "httpUrl", "uri")
	e.Remote = e.URL != ""
	e.Args = texts(table["args"])
	if words := texts(table["command"]); len(words) > 0 {
		e.Command, e.Args = words[0], words[1:]
	}
	for _, k := range []string{"env", "envs", "environment"} {
		values, _ := table[k].(map[string]any)
		for variable, v := range values {
			if s, ok := v.(string); ok {
				if e.Env == nil {
					e.Env = map[string]string{}
				}
				e.Env[variable] = s
			}
		}
	}
	disabled, _ := table["disabled"].(bool)
	enabled, ok := table["enabled"].(bool)
	e.Disabled = disabled || ok && !enabled
	return e
}

// texts are the texts of a list.
func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func sortedKeys(table map[string]any) []string {
	keys := make([]string, 0, len(table))
	for k := range table {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// TakesRoots says whether a client starts servers somewhere else than in the project, so that directories are named in
// its file.
func TakesRoots(client string) bool {
	c, ok := clients.Of(client)
	return ok && c.TakesRoots()
}
