package confine

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/confine/look"
	"codehand/tools/git"
)

// protectedDepth is how many directories below a root protected names and repositories are looked for.
const protectedDepth = 3

// repositoryNames are the files and directories of a `.git` by which a repository makes git run something or look
// elsewhere. What git itself makes for the time of a rebase is not among them. Those of submodules are looked for by
// submodulesNow.
var repositoryNames = []string{
	"config", "config.worktree", "hooks", "info/attributes", "commondir", "gitdir", "objects/info/alternates",
	"worktrees/*/config.worktree", "worktrees/*/commondir", "worktrees/*/gitdir",
}

// submoduleNames are those of repositoryNames that a command must not make in the repository of a submodule.
var submoduleNames = []string{"hooks", "commondir"}

// What the look for protected names finds.
const (
	protectedName = iota
	protectedRepository
	protectedBare // HEAD of what git takes for a repository without a `.git`
	protectedDot  // a `.git` that is no directory, and leads to one
)

// brought is a protected name that commands change freely: git itself trusts nothing in it, since every clone and pull
// brings one.
const brought = ".gitmodules"

// A names is what commands find of protected names in a root or a repository.
type names struct {
	found   []string // what exists
	configs []string // those of found that are git's configuration: a command writes a copy, see ownConfigs
	missing []string // what does not exist, and would make git run something in a repository that does
	gits    []string // each `.git` that is a directory
	dots    []string // what leads to a repository: each `.git` that is no directory, and those that go by another name
	obeyed  AllObeyed
}

func (n *names) add(more names) {
	n.found = append(n.found, more.found...)
	n.configs = append(n.configs, more.configs...)
	n.missing = append(n.missing, more.missing...)
	n.gits = append(n.gits, more.gits...)
	n.dots = append(n.dots, more.dots...)
	n.obeyed = append(n.obeyed, more.obeyed...)
}

// places are what leads to each repository.
func (n *names) places() []string { return sorted(slices.Concat(n.gits, n.dots)) }

// A finder is one look for protected names.
type finder struct {
	*Confiner

	name func(rel string) string // tells a protected name from another by its path below a root; "": it is none
	left int                     // entries of directories that may still be read
	open func(path string) bool  // opens what this user shut, and says whether it did; nil: that stays as it is
}

// finder returns one for a look.
func (c *Confiner) finder(open func(path string) bool) *finder {
	return &finder{Confiner: c, name: c.o.Protected.Find, open: open}
}

// afterwards is how much more is looked at when a command has ended: else it could hide what it made behind the rest.
const afterwards = 100

// most is limit, or what afterwards makes of it.
func (f *finder) most(limit int) int {
	if f.open != nil {
		return limit * afterwards
	}
	return limit
}

// opened says whether something that this user shut is open now.
func (f *finder) opened(path string) bool { return f.open != nil && f.open(path) }

// protectedNow returns what exists of protected names in root: no command changes it unless a person allowed that.
// whole is false if root has too many files to look at.
func (f *finder) protectedNow(root string) (all names, whole bool) {
	f.left = f.most(f.looker.Limit())
	hits, whole := f.looker.Find(root, "protected", look.Search{
		Left: &f.left, Shut: []int{protectedName}, Open: f.open,
		Judge: func(path string, d fs.DirEntry, depth int) (of []int, enter bool) {
			switch {
			case d.Name() == ".git" && d.IsDir():
				return []int{protectedRepository}, false
			case d.Name() == ".git":
				return []int{protectedDot}, false
			case d.Name() == "HEAD" && !d.IsDir() && isBare(filepath.Dir(path)):
				return []int{protectedBare}, false
			}
			rel, _ := filepath.Rel(root, path) // it lies below
			if found := f.name(filepath.ToSlash(rel)); found != "" && found != brought {
				return []int{protectedName}, false
			}
			return nil, d.Name() != "node_modules" && depth < protectedDepth
		},
	})
	for _, h := range hits {
		switch h.Of[0] {
		case protectedRepository:
			more, ok := f.repositoryNow(h.Path)
			all.add(more)
			all.gits = append(all.gits, h.Path)
			whole = whole && ok
		case protectedBare:
			more, ok := f.repositoryNow(filepath.Dir(h.Path))
			all.add(more)
			all.dots = append(all.dots, filepath.Dir(h.Path))
			whole = whole && ok
		case protectedDot:
			f.opened(h.Path)
			all.addDot(h.Path, f.name)
		default:
			all.found = append(all.found, h.Path)
		}
	}
	return all, whole
}

// Keeper returns what says by which protected name, in roots, commands are kept from changing a file: the path that has
// the name; "": they are not. What a person allowed is not looked at, nor what is in a repository's own directory.
func (c *Confiner) Keeper(roots []string) func(path string) string {
	return func(path string) string {
		in := ""
		for _, root := range roots {
			if len(root) > len(in) && within(path, root) { // a work tree of the session lies below a protected name
				in = root
			}
		}
		rel, err := filepath.Rel(in, path)
		if in == "" || err != nil {
			return ""
		}
		parts := strings.Split(filepath.ToSlash(rel), "/")
		for i := range min(len(parts), protectedDepth+1) {
			if parts[i] == ".git" || parts[i] == "node_modules" {
				break
			}
			at := strings.Join(parts[:i+1], "/")
			if name := c.o.Protected.Find(at); name != "" && name != brought {
				return filepath.Join(in, filepath.FromSlash(at))
			}
		}
		return ""
	}
}

// addDot adds a `.git` that is no directory.
func (n *names) addDot(path string, name func(rel string) string) {
	n.dots = append(n.dots, path)
	if name(".git") != "" {
		n.found = append(n.found, path)
	}
}

// isBare says whether git takes a directory with a HEAD for a repository, though it is not named `.git`. Where another
// directory shares its objects, that has them.
func isBare(dir string) bool {
	return exists(filepath.Join(dir, "objects")) && exists(filepath.Join(dir, "refs")) ||
		exists(filepath.Join(dir, "commondir"))
}

// repositoryNow returns what exists and what is missing of the names of a repository and its submodules, but for those
// that the user has opened. whole is false if there is too much to look at.
func (f *finder) repositoryNow(repository string) (all names, whole bool) {
	if f.open != nil {
		f.openIn(repository)
	} else if shut := shutIn(repository); len(shut) > 0 {
		defer func() { all.found = append(all.found, shut...) }()
	}
	all.found = slices.DeleteFunc(namedIn(repository, repositoryNames), func(path string) bool {
		rel, _ := filepath.Rel(repository, path) // it lies below
		return f.name(".git/"+filepath.ToSlash(rel)) == ""
	})
	all.configs = slices.DeleteFunc(slices.Clone(all.found), func(path string) bool { return !isConfig(path) })
	all.missing = missingIn(repository, f.name)
	more, whole := f.submodulesNow(repository)
	all.add(more)
	return all, whole
}

// repositoryDirs are the directories of a repository on the way to its names, from above to below.
var repositoryDirs = []string{"info", "objects", "objects/info", "modules", "worktrees", "worktrees/*"}

// openIn opens what is shut on the way to the names of a repository.
func (f *finder) openIn(repository string) {
	f.open(repository)
	for _, name := range repositoryDirs {
		for _, path := range namedIn(repository, []string{name}) {
			f.open(path)
		}
	}
}

// shutIn returns the directories on that way that this user owns and shut. Nothing of what they hold can be found, and
// a command could open them again: they stay as they are, as a whole.
func shutIn(repository string) (all []string) {
	for _, dir := range append([]string{repository}, namedIn(repository, repositoryDirs)...) {
		if look.Shut(dir) {
			all = append(all, dir)
		}
	}
	return all
}

// submodulesNow is repositoryNow for what lies in the repositories of submodules, whose names may have slashes and
// which may have submodules themselves.
func (f *finder) submodulesNow(repository string) (all names, whole bool) {
	modules := filepath.Join(repository, "modules")
	if !exists(modules) {
		return all, true
	}
	hits, whole := f.looker.Find(modules, "modules", look.Search{
		Left: &f.left, Shut: []int{protectedName}, Open: f.open,
		Judge: func(path string, d fs.DirEntry, depth int) (of []int, enter bool) {
			switch d.Name() {
			case "objects", "refs", "logs", "info", "lfs":
				if exists(filepath.Join(filepath.Dir(path), "HEAD")) {
					return nil, false // git's own, and not a part of a name
				}
			case "config", "commondir", worktreeConfig:
				if d.IsDir() {
					return nil, true // a part of a name
				}
			}
			rel, _ := filepath.Rel(repository, path) // it lies below
			if depth > 0 && f.name(".git/"+filepath.ToSlash(rel)) != "" {
				return []int{protectedName}, false
			}
			return nil, true
		},
	})
	for _, h := range hits {
		all.found = append(all.found, h.Path)
		if !isConfig(h.Path) {
			continue
		}
		all.configs = append(all.configs, h.Path)
		dir := filepath.Dir(h.Path)
		rel, _ := filepath.Rel(repository, dir) // it lies below
		for _, missing := range submoduleNames {
			if path := filepath.Join(dir, missing); !exists(path) &&
				f.name(".git/"+filepath.ToSlash(rel)+"/"+missing) != "" {
				all.missing = append(all.missing, path)
			}
		}
	}
	return all, whole
}

// isConfig says whether one of the names of a repository is git's configuration.
func isConfig(path string) bool {
	base := filepath.Base(path)
	return base == "config" || base == worktreeConfig
}

// namedIn returns what exists in a `.git` of names, which are patterns.
func namedIn(repository string, names []string) (found []string) {
	for _, name := range names {
		if !strings.Contains(name, "*") {
			if path := filepath.Join(repository, name); exists(path) {
				found = append(found, path)
			}
			continue
		}
		matches, _ := filepath.Glob(filepath.Join(globEscape(repository), name)) // the pattern is right
		found = append(found, matches...)
	}
	return found
}

// globEscape makes a path a pattern for filepath.Glob that matches it alone.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// missing returns the protected names that could be made from the top of root on, without a slash at their end. Those
// with a star, which only an operator writes, are not looked for; those of a repository are what missingIn returns.
func missing(root string, texts []string) (paths []string) {
	for _, text := range texts {
		name := strings.TrimSuffix(text, "/**")
		if strings.Contains(name, "*") || name == ".git" || strings.HasPrefix(name, ".git/") || name == brought ||
			exists(filepath.Join(root, name)) {
			continue
		}
		paths = append(paths, filepath.Join(root, name))
	}
	return paths
}

// missingTop returns the HEAD that a command could make at the top of a work tree, so that git took the tree itself for
// a repository as soon as it finds none in `.git`. A HEAD that is there stays free.
func missingTop(root string) []string {
	if path := filepath.Join(root, "HEAD"); exists(filepath.Join(root, ".git")) && !exists(path) {
		return []string{path}
	}
	return nil
}

// missingIn returns the names by which a repository makes git run something or look elsewhere, and that are not there,
// but for those that the user has opened.
func missingIn(repository string, known func(rel string) string) (paths []string) {
	if !exists(filepath.Join(repository, "HEAD")) && !exists(filepath.Join(repository, "config")) {
		return nil // git would find none here
	}
	for _, name := range repositoryNames {
		if path := filepath.Join(repository, name); !strings.Contains(name, "*") && !exists(path) &&
			known(".git/"+name) != "" && (name != worktreeConfig || readsWorktree(repository)) {
			paths = append(paths, path)
		}
	}
	return paths
}

// readsWorktree says whether git reads config.worktree in a repository now. Otherwise a command may make it: nothing
// obeys it before the command has ended.
func readsWorktree(repository string) bool {
	values, whole := git.Values("", "extensions.worktreeconfig", filepath.Join(repository, "config"))
	return len(values) > 0 || !whole
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// otherTrees returns what a repository keeps of its work trees that are not among roots, with the main one: what is
// staged there, and which branch is checked out, with the file that has its commit.
func otherTrees(repository string, roots []string) (all []string) {
	add := func(dir string) {
		head := filepath.Join(dir, "HEAD")
		all = append(all, head, filepath.Join(dir, "index"))
		text, _ := os.ReadFile(head)
		if ref, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "ref: "); ok && filepath.IsLocal(ref) {
			all = append(all, filepath.Join(repository, ref))
		}
	}
	add(repository)
	entries, _ := os.ReadDir(filepath.Join(repository, "worktrees")) // there may be none
	for _, e := range entries {
		dir := filepath.Join(repository, "worktrees", e.Name())
		of, _ := os.ReadFile(filepath.Join(dir, "gitdir"))
		if tree := filepath.Dir(strings.TrimSpace(string(of))); !slices.Contains(roots, tree) {
			add(dir)
		}
	}
	return slices.DeleteFunc(all, gone)
}
