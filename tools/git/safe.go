package git

import (
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

// SafeSetting says whether a command may change the key of a setting in a repository's configuration, and whether it
// may have this value. dir is the directory of the file; inside says whether an absolute path leads into a root.
func SafeSetting(s Setting, dir string, inside func(path string) bool) (key, value bool) {
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
	case "remote.*.url", "remote.*.pushurl", "submodule.*.url", "branch.*.remote", "branch.*.pushremote",
		"remote.pushdefault":
		return true, safeURL(s.Value)
	case "core.worktree":
		at := below(dir, s.Value)
		named := filepath.Clean(at)
		_, err := filepath.EvalSymlinks(at)
		// git goes up from where a link leads, others from its name
		return true, s.Value != "" && inside(named) && inside(real(at)) && inside(real(named)) &&
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
