package confine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"codehand/tools/git"
	"codehand/tools/sandbox"
)

// A command writes git's configuration in a copy of its own. The file itself stays as it is while the command runs, so
// that no git outside obeys what the command wrote, also if the server is killed. When the command has ended, the keys
// by which git runs nothing and reads nothing else are taken over into the file as it is then; others are named.

// configs are the configuration files of the repositories that one command may change.
type configs struct {
	roots   []string // of the session
	written []string // the roots, and repositories outside of them
	temp    *os.Root // of the session: commands write there, so nothing is opened by its path alone
	dir     string   // has the copies, in temp
	all     []config
	known   map[string]os.FileInfo // files that were there when the command started
	allowed []string               // files and directories that a person allowed it to change
	others  []string               // what the command writes besides: caches, its temporary directory
	begun   begun
	before  earlier
	unnote  func() // removes the note about the command
	// it has become a job, so what appeared may be the person's
	background bool
	share      func(path string, by int) int // Confiner.share
	shut       []sandbox.Shut                // what the command shut, and is open for a moment
	// newer returns what there is now; whole is false if that is too much
	newer func(open func(path string) bool) (now names, whole bool)
}

// A config is a file of which the command has a copy.
type config struct {
	path string
	dir  *os.Root // the directory that had it when the command started
	was  os.FileInfo
	base []byte
	copy string // below configs.temp
}

const (
	// maxConfigs is how many repositories a command can configure. More stay as they are.
	maxConfigs = 100
	maxConfig  = 1 << 20
)

// ownConfigs gives a command copies of the configuration files that were found and that p protects, but for those that
// rules keep. It changes p.
func (s *Session) ownConfigs(p *sandbox.Profile, u Use, found names, keep []string) *configs {
	c := &configs{
		roots: u.Roots, written: slices.Concat(u.Roots, u.commons(s.Confiner)),
		known: map[string]os.FileInfo{}, share: s.share,
		allowed: slices.Concat(u.Allowed, u.removed()), others: append(slices.Clone(p.Writable), u.Temp),
	}
	c.before = s.now(u, p.Protected, found.obeyed)
	c.temp, _ = os.OpenRoot(u.Temp) // without it all files stay as they are
	for _, path := range p.Protected {
		// What is missing is watched only until the command becomes a job.
		c.knows(path)
	}
	for _, path := range found.configs {
		c.knows(path)
		if len(c.all) == maxConfigs || !slices.Contains(p.Protected, path) || slices.Contains(keep, path) {
			continue
		}
		if slices.ContainsFunc(p.Hidden, func(h string) bool { return within(path, h) }) {
			continue
		}
		if own, ok := c.add(path); ok {
			p.Linked = append(p.Linked, sandbox.Link{Path: path, Target: own})
			p.Protected = slices.DeleteFunc(p.Protected, func(at string) bool { return at == path })
		}
	}
	c.begun = begun{slices.Clone(p.Protected), c.indexes()}
	c.unnote = s.noteRunning(u, c.known)
	c.newer = func(open func(string) bool) (now names, whole bool) {
		whole = true
		f := s.finder(open)
		add := func(found names, ok bool) {
			now.add(found)
			whole = whole && ok
		}
		for _, root := range u.Roots {
			add(f.protectedIn(root))
		}
		for _, common := range u.commons(s.Confiner) {
			add(f.repositoryOf(common))
		}
		return now, whole
	}
	return c
}

// unshut opens, until Over ends, what the command shut: path and what is on the way there. Without that it could keep
// what it made from being found, or from being taken away. It says whether anything was shut.
func (c *configs) unshut(path string, need os.FileMode) bool {
	i := slices.IndexFunc(c.written, func(top string) bool { return within(path, top) })
	if i < 0 {
		return false
	}
	for at := path; at != c.written[i]; at = filepath.Dir(at) {
		if _, known := c.known[at]; known {
			return false // no command changed it
		}
	}
	was := sandbox.Unshut(c.written[i], path, need)
	c.shut = append(c.shut, was...)
	return len(was) > 0
}

// reach is open of a file that the command made, of which the directory is about to be changed.
func (c *configs) reach(path string) (*os.Root, error) {
	c.unshut(filepath.Dir(path), 0o700)
	return c.open(path)
}

// knows remembers a file that is there, or of which a person keeps this user from knowing.
func (c *configs) knows(path string) {
	info, err := os.Lstat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		c.known[path] = info
	}
}

// isKnown says whether a file is the one that was there when the command started. A command may have made another one
// where an earlier job's was set aside.
func (c *configs) isKnown(path string) bool {
	was, known := c.known[path]
	if !known || was == nil || isConfig(path) { // git itself replaces its configuration
		return known
	}
	now, err := os.Lstat(path)
	return err != nil || os.SameFile(was, now)
}

// share counts the commands that have a copy of a configuration mounted over it, and changes that number.
func (c *Confiner) share(path string, by int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shared[path] += by
	now := c.shared[path]
	if now <= 0 {
		delete(c.shared, path)
	}
	return now
}

func sorted(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}

// add makes a copy of a configuration file. Not ok: it is none that git could write, or there is no room.
func (c *configs) add(path string) (own string, ok bool) {
	if c.temp == nil {
		return "", false
	}
	dir, err := c.open(path)
	if err != nil {
		return "", false
	}
	defer func() {
		if !ok {
			_ = dir.Close() // a directory handle holds no data
		}
	}()
	info, err := dir.Lstat(filepath.Base(path))
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	base, err := git.ReadSmallIn(dir, filepath.Base(path), maxConfig)
	if err != nil {
		return "", false
	}
	if c.dir == "" {
		c.dir = ".git-config-" + rand.Text()[:10]
	}
	at := filepath.Join(c.dir, strconv.Itoa(len(c.all)))
	own = filepath.Join(at, filepath.Base(path))
	if c.temp.MkdirAll(at, 0o700) != nil || c.temp.WriteFile(own, base, info.Mode().Perm()|0o600) != nil {
		return "", false
	}
	c.share(path, 1)
	c.all = append(c.all, config{path: path, dir: dir, was: info, base: base, copy: own})
	return filepath.Join(c.temp.Name(), own), true
}

// open opens the directory of a file that the command may write.
func (c *configs) open(path string) (*os.Root, error) { return openAround(path, c.written) }

// openAround opens the directory of a file in one of dirs. No link leads it out of there.
func openAround(path string, dirs []string) (*os.Root, error) {
	for _, top := range dirs {
		rel, err := filepath.Rel(top, filepath.Dir(path))
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		root, err := os.OpenRoot(top)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // a directory handle holds no data
		return root.OpenRoot(rel)
	}
	return nil, fs.ErrNotExist
}

// drop removes the copies, and the note about the command.
func (c *configs) drop() {
	c.unnote()
	for _, one := range c.all {
		c.share(one.path, -1)
		_ = one.dir.Close() // a directory handle holds no data
	}
	if c.temp == nil {
		return
	}
	if c.dir != "" {
		_ = c.temp.RemoveAll(c.dir) // the rest goes with the session's temporary directory
	}
	_ = c.temp.Close() // a directory handle holds no data
}

// Drop gives up what was made for a command that was not started.
func (c Command) Drop() {
	if c.pass.door != nil {
		c.pass.door.Close()
	}
	c.hooks.drop()
	if c.configs != nil {
		c.configs.drop()
	}
}

// Over is called once when all of the command has ended. It takes over what the command changed in git's
// configuration, and returns a line for each file with what was not taken over, and for each password that git did not
// get. background: it went on beside what the person does. What git would obey of what appeared meanwhile is taken for
// its work even so, since a command has only to wait until it is a job, but nothing of it is lost.
func (c Command) Over(background bool) (lines []string) {
	if c.pass.door != nil {
		c.pass.door.Close()
		for _, why := range c.pass.door.Why() {
			lines = append(lines, c.said(why))
		}
	}
	if c.configs == nil {
		return lines
	}
	defer c.configs.drop()
	defer c.hooks.drop()
	c.configs.background = background
	open := func(path string) bool { return c.configs.unshut(path, 0o500) }
	defer func() {
		for _, was := range slices.Backward(c.configs.shut) {
			was.Again()
		}
	}()
	if line := c.configs.before.changed(c.configs); line != "" {
		lines = append(lines, line)
	}
	// What config.worktree says is looked at before a config that makes git read it.
	now, whole := c.configs.newer(open)
	if !whole {
		lines = append(lines, "[what is here now is too much to look through, and git may obey what a command made: "+
			"have a person look at it before git runs outside of a command]")
	}
	for _, path := range slices.Backward(sorted(now.configs)) {
		if _, known := c.configs.known[path]; known {
			continue
		}
		if line := c.configs.settleNew(path); line != "" {
			lines = append(lines, line)
		}
	}
	lines = append(lines, c.configs.settleMade(now)...)
	for _, one := range slices.Backward(c.configs.all) {
		for _, line := range []string{c.configs.replaced(one), c.configs.settle(one)} {
			if line != "" {
				lines = append(lines, line)
			}
		}
	}
	slices.Reverse(lines)
	lines = append(c.hooks.unkept(c.configs.shown), lines...)
	if line := c.configs.behind(); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// replaced says what a configuration has that no command may set, where another file was renamed onto it while the
// command ran, as git does for a person: for a moment nothing kept the command from the file itself.
func (c *configs) replaced(one config) string {
	name := filepath.Base(one.path)
	info, err := one.dir.Lstat(name)
	if err != nil || os.SameFile(info, one.was) {
		return ""
	}
	now, err := git.ReadSmallIn(one.dir, name, maxConfig)
	if err != nil {
		return ""
	}
	_, refused, err := git.MergeConfig(one.base, one.base, now, c.safe(one.path))
	if err != nil || len(refused) == 0 {
		return ""
	}
	return fmt.Sprintf("[%s: replaced while this command ran, which could write it, and has %s now: unless the "+
		"user set that, have them look at it before git runs outside of a command]", c.shown(one.path), named(refused))
}

// settle takes over what is safe of one copy.
func (c *configs) settle(one config) string {
	next, err := git.ReadSmallIn(c.temp, one.copy, maxConfig)
	if err != nil {
		return c.lost(one.path, errors.New("the copy that the command wrote cannot be read"))
	}
	if string(next) == string(one.base) {
		return ""
	}
	var refused []string
	others := c.share(one.path, 0) > 1
	err = git.UpdateConfig(one.dir, filepath.Base(one.path), others, func(now []byte) (merged []byte, err error) {
		merged, refused, err = git.MergeConfig(now, one.base, next, c.safe(one.path))
		return merged, err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // gone: its repository was removed meanwhile
		return c.lost(one.path, err)
	}
	return c.said(one.path, refused)
}

// settleNew takes out of the configuration of a repository that the command made what is not safe. A copy that the
// command made of another repository has a link to our copy in place of its configuration.
func (c *configs) settleNew(path string) string {
	dir, err := c.reach(path)
	if err != nil {
		return "" // it leads elsewhere
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	name := filepath.Base(path)
	if target, err := dir.Readlink(name); err == nil {
		i := slices.IndexFunc(c.all, func(one config) bool { return filepath.Join(c.temp.Name(), one.copy) == target })
		if i < 0 {
			return c.setAside(dir, path, configName(path))
		}
		content, err := git.ReadSmallIn(c.temp, c.all[i].copy, maxConfig)
		if err == nil {
			err = dir.Remove(name)
		}
		if err == nil {
			err = dir.WriteFile(name, content, 0o644)
		}
		if err != nil {
			return c.lost(path, err)
		}
	}
	var refused []string
	kept := ""
	err = git.UpdateConfig(dir, name, c.share(path, 0) > 0, func(now []byte) ([]byte, error) {
		merged, found, err := git.MergeConfig(nil, nil, now, c.safe(path))
		if refused = found; err != nil || len(refused) == 0 {
			return now, err
		}
		if c.background {
			kept = name + sandbox.Aside + rand.Text()[:6]
			return merged, dir.WriteFile(kept, now, 0o600)
		}
		return merged, nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // nobody knows what git would obey there
		return c.setAside(dir, path, configName(path))
	}
	line := c.said(path, refused)
	if kept != "" && line != "" {
		line = strings.TrimSuffix(line, "]") + "; " + kept + " has it as it was" + c.byWhom() + "]"
	}
	return line
}

// byWhom is what a line adds about something that appeared beside a job.
func (c *configs) byWhom() string {
	if !c.background {
		return ""
	}
	return "; a person who made it while the job ran renames it back"
}

// worktreeConfig is a configuration that git reads where extensions.worktreeConfig is set.
const worktreeConfig = "config.worktree"

// obeyed says whether what git reads besides a configuration, once it sets extensions.worktreeConfig, is all safe.
func (c *configs) obeyed(config string) bool {
	dir := filepath.Dir(config)
	others, _ := filepath.Glob(filepath.Join(globEscape(dir), "worktrees", "*", worktreeConfig)) // the pattern is right
	for _, path := range append(others, filepath.Join(dir, worktreeConfig)) {
		if c.unsafe(path) {
			return false
		}
	}
	return true
}

// unsafe says whether a configuration has anything that a command must not set, or leads elsewhere.
func (c *configs) unsafe(path string) bool {
	dir, err := c.open(path)
	if err != nil {
		return true
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	content, err := git.ReadSmallIn(dir, filepath.Base(path), maxConfig)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	_, refused, err := git.MergeConfig(nil, nil, content, c.safe(path))
	return err != nil || len(refused) > 0
}

func (c *configs) safe(path string) func(git.Setting) (key, value bool) {
	return func(s git.Setting) (key, value bool) {
		if s.Section == "extensions" && s.Name == "worktreeconfig" && filepath.Base(path) == "config" &&
			!c.obeyed(path) {
			return true, false
		}
		return git.SafeSetting(s, filepath.Dir(path), git.Grounds{Inside: func(at string) bool {
			return slices.ContainsFunc(c.roots, func(root string) bool { return within(at, root) })
		}, Planted: c.planted})
	}
}

// planted says whether a command may have made the repository at a path: it writes there, and did not find the
// repository, whose hooks are kept from it then.
func (c *configs) planted(path string) bool {
	for _, of := range []string{path, filepath.Join(path, ".git"), path + ".git"} {
		if _, known := c.known[filepath.Join(of, "config")]; known {
			return false
		}
	}
	return slices.ContainsFunc(slices.Concat(c.written, c.others), func(top string) bool { return within(path, top) })
}

// shown is a path below its root.
func (c *configs) shown(path string) string {
	for _, root := range c.roots {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return path
}

func (c *configs) lost(path string, err error) string {
	return fmt.Sprintf("[%s: changes by this command were not taken over: %v]", c.shown(path), err)
}

// maxNamed is how many keys a line names.
const maxNamed = 10

// said names what was taken out of a file.
func (c *configs) said(path string, keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return fmt.Sprintf("[%s: took out %s; to let commands set it, the user sets permissions.unprotect = [%q]]",
		c.shown(path), named(keys), configName(path))
}

// named lists keys of a configuration.
func named(keys []string) string {
	names := make([]string, 0, maxNamed+1)
	for _, key := range keys {
		if len(names) == maxNamed {
			names = append(names, fmt.Sprintf("%d more", len(keys)-maxNamed))
			break
		}
		if len(key) > 100 || strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
			key = strconv.Quote(key[:min(100, len(key))])
		}
		names = append(names, key)
	}
	return strings.Join(names, ", ")
}

// configName is the protected name that a configuration file falls under.
func configName(path string) string {
	path = filepath.ToSlash(path)
	switch base := filepath.Base(path); {
	case strings.Contains(path, "/modules/"):
		return ".git/modules/**/config"
	case strings.Contains(path, "/worktrees/") && base == worktreeConfig:
		return ".git/worktrees/**/config.worktree"
	default:
		return ".git/" + base
	}
}
