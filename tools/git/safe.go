package git

import (
	neturl "net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// safeKeys are the keys that a command may change in a repository's configuration, as `section.name` and
// `section.*.name` with a subsection, names in lower case; a name `*` is any. None of them names a program, a file that
// git obeys, a way to other servers than a URL does, or a rewriting of URLs.
var safeKeys = map[string]string{
	"branch":   "autosetuprebase autosetupmerge sort",
	"branch.*": "remote merge rebase pushremote description gh-merge-base vscode-merge-base mergeoptions",
	"remote":   "pushdefault",
	"remote.*": "url pushurl fetch tagopt prune prunetags skipdefaultupdate skipfetchall " +
		"followremotehead promisor partialclonefilter gh-resolved",
	"user":      "name email signingkey useconfigonly",
	"author":    "name email",
	"committer": "name email",

	"submodule":   "active recurse fetchjobs propagatebranches",
	"submodule.*": "url active branch ignore fetchrecursesubmodules shallow update",

	"core": "bare filemode ignorecase repositoryformatversion logallrefupdates worktree symlinks " +
		"precomposeunicode autocrlf eol safecrlf quotepath abbrev sparsecheckout sparsecheckoutcone " +
		"untrackedcache preloadindex splitindex compression longpaths whitespace multipackindex commitgraph " +
		"trustctime checkstat bigfilethreshold",
	"extensions": "worktreeconfig objectformat compatobjectformat refstorage noop preciousobjects " +
		"partialclone relativeworktrees",
	"index":   "version threads sparse skiphash",
	"feature": "manyfiles experimental",

	"init":     "defaultbranch",
	"clone":    "defaultremotename",
	"checkout": "defaultremote guess workers",
	"worktree": "guessremote userelativepaths",
	"pull":     "rebase ff",
	"fetch":    "prune prunetags parallel all writecommitgraph recursesubmodules showforcedupdates output",
	"push":     "default autosetupremote followtags recursesubmodules useforceifincludes gpgsign",
	"merge":    "ff conflictstyle renames renamelimit directoryrenames log stat autostash branchdesc verbosity",
	"rebase":   "autosquash autostash stat updaterefs forkpoint rebasemerges missingcommitscheck abbreviatecommands",
	"rerere":   "enabled autoupdate",
	"commit":   "verbose status cleanup gpgsign",
	"tag":      "sort gpgsign forcesignannotated",
	"gpg":      "format",
	"stash":    "showpatch showstat showincludeuntracked",
	"apply":    "whitespace ignorewhitespace",
	"gc":       "auto autodetach autopacklimit writecommitgraph",

	"maintenance": "auto autodetach strategy",

	"advice": "*", "color": "*", "color.*": "*", "column": "*",
	"diff": "renames renamelimit algorithm colormoved colormovedws mnemonicprefix noprefix submodule " +
		"context interhunkcontext indentheuristic suppressblankempty ignoresubmodules " +
		"statgraphwidth relative wserrorhighlight",
	"log": "date decorate abbrevcommit follow graphcolors showroot",
	"status": "short branch showuntrackedfiles showstash aheadbehind relativepaths renames renamelimit " +
		"submodulesummary displaycommentprefix",
	"grep":  "linenumber patterntype extendedregexp column fullname",
	"blame": "coloring date showemail showroot",
	"http":  "postbuffer version lowspeedlimit lowspeedtime",
	"lfs":   "repositoryformatversion locksverify",
	"lfs.*": "access locksverify",
}

// Grounds say what the absolute paths in a configuration lead to.
type Grounds struct {
	Inside func(path string) bool // a root has it
	// Planted says whether a command may have made a repository there, with hooks that a push into it runs.
	Planted func(path string) bool
}

// SafeSetting says whether a command may change the key of a setting in a repository's configuration, and whether it
// may have this value. dir is the directory of the file.
func SafeSetting(s Setting, dir string, at Grounds) (key, value bool) {
	section := s.Section
	if s.HasSub {
		section += ".*"
	}
	names, known := safeKeys[section]
	if !known || names != "*" && !slices.Contains(strings.Fields(names), s.Name) {
		return false, false
	}
	if strings.ContainsFunc(s.Value+s.Sub, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return true, false
	}
	switch section + "." + s.Name {
	case "remote.*.fetch":
		return true, fetchesApart(s.Value)
	case "submodule.*.url": // nothing is pushed to it
		return true, safeURL(s.Value)
	case "remote.*.url", "remote.*.pushurl", "branch.*.remote", "branch.*.pushremote", "remote.pushdefault":
		return true, safeURL(s.Value) && !slices.ContainsFunc(local(s.Value, dir), at.Planted)
	case "core.worktree":
		tree := below(dir, s.Value)
		named := filepath.Clean(tree)
		_, err := filepath.EvalSymlinks(tree)
		// git goes up from where a link leads, others from its name
		return true, s.Value != "" && at.Inside(named) && at.Inside(real(tree)) && at.Inside(real(named)) &&
			(err == nil || !turnsBack(s.Value))
	case "submodule.*.update":
		return true, slices.Contains([]string{"checkout", "rebase", "merge", "none"}, s.Value)
	case "branch.*.mergeoptions":
		return true, slices.Contains([]string{"--no-ff", "--ff", "--ff-only", "--squash"}, s.Value)
	case "gpg.format":
		return true, slices.Contains([]string{"openpgp", "x509", "ssh"}, s.Value)
	}
	return true, !strings.HasPrefix(s.Value, "-")
}

// turnsBack says whether a path goes up after it went down: where a link is made on the way, it leads elsewhere.
func turnsBack(path string) bool {
	down := false
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if part == ".." && down {
			return true
		}
		down = down || part != "" && part != "." && part != ".."
	}
	return false
}

// fetchesApart says whether a refspec leads to refs of a remote alone: with another one, and prune, git fetch takes
// away branches that nothing else has.
func fetchesApart(refspec string) bool {
	_, to, both := strings.Cut(refspec, ":")
	return !strings.HasPrefix(refspec, "-") && (!both || to == "" || strings.HasPrefix(to, "refs/remotes/") ||
		refspec == "refs/tags/*:refs/tags/*")
}

var schemes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i:(https?|ssh|git|file|ftps?|git\+ssh|ssh\+git)://[^-])`)
})

// helpers matches `ext::…`, which starts the program git-remote-ext.
var helpers = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9+.-]*::`) })

// safeURL says whether git reaches a repository by a way of its own: no other helper's, and no text that ssh would take
// for an option.
func safeURL(url string) bool {
	if strings.HasPrefix(url, "-") || helpers().MatchString(url) || strings.Contains(url, "@-") ||
		strings.Contains(url, ":-") {
		return false
	}
	return !strings.Contains(url, "://") || schemes().MatchString(url)
}

// local returns where a URL, or the name of a remote, may lead on this machine: nowhere for what names a host. A path
// starts at the top of the work tree, or in a bare repository; dir is that of the configuration. git looks at a word
// without a slash as a path only where no remote has that name, and then for what is there.
func local(url, dir string) []string {
	if path, ok := strings.CutPrefix(strings.ToLower(url), "file://"); ok {
		url = url[len(url)-len(path):]
		url = url[max(strings.IndexByte(url, '/'), 0):] // behind a host
		if plain, err := neturl.PathUnescape(url); err == nil {
			url = plain // as git reads it
		}
	} else if colon := strings.IndexByte(url, ':'); colon >= 0 && !strings.Contains(url[:colon], "/") {
		return nil
	}
	if url == "" || url == "." {
		return nil
	}
	tops := []string{dir, filepath.Dir(dir)}
	if filepath.Base(dir) == ".git" {
		tops = tops[1:]
	}
	var paths []string
	for _, from := range tops {
		named := below(from, url)
		if strings.HasPrefix(url, "~") { // a home that only git knows
			named = from
		}
		if _, err := os.Stat(named); strings.Contains(url, "/") || err == nil {
			paths = append(paths, filepath.Clean(named), real(named))
		}
	}
	return paths
}
