package git

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const baseConfig = "[core]\n\trepositoryformatversion = 0 # kept\n\tbare = false\n[remote \"origin\"]\n" +
	"\turl = https://example.com/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n; of a person\n" +
	"[alias]\n\tst = status\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"

// Only the safe keys of what a command made of a configuration get into the file, and what others changed meanwhile
// stays.
func TestMergeConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		now, base, next string
		want            string
		refused         []string
	}{
		"nothing": {next: baseConfig, want: baseConfig},
		"key": {
			next: baseConfig + "[user]\n\tname = A \"B\" ; c\n\temail = \"a # b\"\n",
			want: baseConfig + "[user]\n\tname = A B\n\temail = \"a # b\"\n",
		},
		"program": {
			next: baseConfig + "[core]\n\thooksPath = x\n\tfsmonitor = ./evil\n[include]\n\tpath = y\n[alias]x=!sh\n",
			want: baseConfig, refused: []string{"core.hooksPath", "core.fsmonitor", "include.path", "alias.x"},
		},
		"program beside a safe key": {
			next: baseConfig + "[branch \"x\"]remote = origin\n[url \"ext::sh\"]insteadOf = https://\n",
			want: baseConfig + "[branch \"x\"]\n\tremote = origin\n", refused: []string{"url.ext::sh.insteadOf"},
		},
		"old value of a program": {
			next: strings.Replace(baseConfig, "status", "!sh", 1), want: baseConfig, refused: []string{"alias.st"},
		},
		"program removed": {
			next: strings.Replace(baseConfig, "\tst = status\n", "", 1), want: baseConfig, refused: []string{"alias.st"},
		},
		"renamed branch": {
			next: strings.Replace(baseConfig, `"main"`, `"a.b \"c"`, 1),
			want: strings.Replace(baseConfig, "[branch \"main\"]\n", "[branch \"a.b \\\"c\"]\n", 1),
		},
		"remote removed": {
			next: strings.Replace(baseConfig, "[remote \"origin\"]\n\turl = https://example.com/x\n"+
				"\tfetch = +refs/heads/*:refs/remotes/origin/*\n", "", 1),
			want: strings.Replace(baseConfig, "[remote \"origin\"]\n\turl = https://example.com/x\n"+
				"\tfetch = +refs/heads/*:refs/remotes/origin/*\n; of a person\n",
				"[remote \"origin\"]\n; of a person\n", 1),
		},
		"changed value": {
			next: strings.Replace(baseConfig, "bare = false", "bare = true", 1),
			want: strings.Replace(baseConfig, "bare = false", "bare = true", 1),
		},
		"several values": {
			next: strings.Replace(baseConfig, "\tfetch", "\tfetch = +a:refs/remotes/b\n\tfetch", 1),
			want: strings.Replace(baseConfig, "\tfetch", "\tfetch = +a:refs/remotes/b\n\tfetch", 1),
		},
		"changed by others": {
			now:  strings.Replace(baseConfig, "status", "log", 1) + "[user]\n\tname = x\n",
			next: baseConfig + "[user]\n\temail = y\n",
			want: strings.Replace(baseConfig, "status", "log", 1) + "[user]\n\tname = x\n\temail = y\n",
		},
		"first": {
			now: "\n", base: "\n", next: "[core]bare\n[init] defaultBranch = trunk",
			want: "\n[core]\n\tbare\n[init]\n\tdefaultBranch = trunk\n",
		},
		"dotted section": {
			next: baseConfig + "[branch.X]\n\tremote = -x\n[remote.Y]\n\turl = /z\n",
			want: baseConfig + "[remote \"y\"]\n\turl = /z\n", refused: []string{"branch.x.remote"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.base == "" {
				c.base = baseConfig
			}
			if c.now == "" {
				c.now = c.base
			}
			got, refused, err := MergeConfig([]byte(c.now), []byte(c.base), []byte(c.next), safeIn("/w"))
			if err != nil || string(got) != c.want && !sameKeys(t, string(got), c.want) ||
				!slices.Equal(refused, c.refused) {
				t.Errorf("%v, refused %q, got\n%s\nwant\n%s", err, refused, got, c.want)
			}
		})
	}
	for _, broken := range []string{"[core", "x = y", "[core]\n\tx = \"y\n"} {
		if _, _, err := MergeConfig([]byte(baseConfig), []byte(baseConfig), []byte(broken), safeIn("/w")); err == nil {
			t.Errorf("%q was read", broken)
		}
	}
}

// sameKeys compares what files say, in whatever order sections stand.
func sameKeys(t *testing.T, got, want string) bool {
	t.Helper()
	var lists [2][]string
	for i, text := range []string{got, want} {
		f, err := parseConfig([]byte(text))
		if err != nil {
			return false
		}
		for _, s := range f.settings {
			lists[i] = append(lists[i], s.id()+s.Value)
		}
		slices.Sort(lists[i])
		lists[i] = append(lists[i], strings.Repeat("#", strings.Count(text, "#")+strings.Count(text, "; of")))
	}
	return slices.Equal(lists[0], lists[1])
}

func safeIn(root string) func(Setting) (key, value bool) {
	return func(s Setting) (key, value bool) {
		in := func(path string) bool { return path == root || strings.HasPrefix(path, root+"/") }
		return SafeSetting(s, filepath.Join(root, ".git"), Grounds{Inside: in, Planted: func(path string) bool {
			return in(path) && filepath.Base(path) != "known.git"
		}})
	}
}

// What a command may set names no program and leads git nowhere else.
func TestSafeSetting(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(root, "out")); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(root, "repo"), 0o700); err != nil {
		t.Fatal(err)
	}
	for config, want := range map[string]bool{
		"[remote \"o\"]url=https://h/x":                                      true,
		"[remote \"o\"]url=git@h:x.git":                                      true,
		"[remote \"o\"]url=../x":                                             true,
		"[remote \"o\"]url=ssh://[::1]:22/x":                                 true,
		"[remote \"o\"]pushurl=/srv/x":                                       true,
		"[remote \"o\"]pushurl=a/x":                                          false,
		"[remote \"o\"]pushurl=./a/known.git":                                true,
		"[remote \"o\"]url=file://h/srv/x":                                   true,
		"[remote \"o\"]url=file://" + root + "/x":                            false,
		fmt.Sprintf("[remote \"o\"]url=file:///%%%x%s/x", root[1], root[2:]): false,
		"[remote \"o\"]url=h:a/x":                                            true,
		"[remote \"o\"]url=~/a/x":                                            false,
		"[remote]pushDefault=origin":                                         true,
		"[remote]pushDefault=repo":                                           false,
		"[branch \"b\"]pushRemote=repo":                                      false,
		"[branch \"b\"]pushRemote=" + root + "/x":                            false,
		"[branch \"b\"]remote=.":                                             true,
		"[remote \"o\"]url=ext::sh -c x":                                     false,
		"[remote \"o\"]url=::x":                                              false,
		"[remote \"o\"]url=foo://x":                                          false,
		"[remote \"o\"]url=-oProxyCommand=x":                                 false,
		"[remote \"o\"]url=ssh://-oProxy/x":                                  false,
		"[remote \"o\"]url=a@-oProxy:x":                                      false,
		"[remote \"o\"]url=\"a\\nb\"":                                        false,
		"[remote \"o\"]fetch=+refs/heads/*:refs/remotes/o/*":                 true,
		"[remote \"o\"]fetch=^refs/heads/x":                                  true,
		"[remote \"o\"]fetch=+refs/heads/n*:refs/heads/*":                    false,
		"[remote \"o\"]uploadpack=x":                                         false,
		"[remote \"o\"]vcs=x":                                                false,
		"[remote \"o\"]proxy=x":                                              false,
		"[submodule \"s\"]update=!sh":                                        false,
		"[submodule \"s\"]update=rebase":                                     true,
		"[submodule \"s\"]url=fd::3":                                         false,
		"[branch \"b\"]merge=refs/heads/b":                                   true,
		"[branch \"b\"]remote=ext::x":                                        false,
		"[core]worktree=../sub":                                              true,
		"[core]worktree=../../sub":                                           false,
		"[core]worktree=../out":                                              false,
		"[core]worktree=../new/../out":                                       false,
		"[core]worktree=../new/../new":                                       false, // where it leads once a command makes a link of the first one
		"[core]worktree=/etc":                                                false,
		"[core]worktree=":                                                    false,
		"[core]bare=true":                                                    true,
		"[core]fsmonitor=true":                                               false,
		"[core]sshCommand=x":                                                 false,
		"[core]attributesFile=x":                                             false,
		"[core]excludesFile=x":                                               false,
		"[core]editor=x":                                                     false,
		"[core]pager=x":                                                      false,
		"[core \"x\"]bare=true":                                              false,
		"[user]signingKey=~/.ssh/id.pub":                                     true,
		"[gpg]program=x":                                                     false,
		"[gpg]format=ssh":                                                    true,
		"[gpg]format=x":                                                      false,
		"[gpg \"ssh\"]program=x":                                             false,
		"[gpg \"ssh\"]defaultKeyCommand=x":                                   false,
		"[diff \"x\"]textconv=x":                                             false,
		"[diff \"x\"]renames=true":                                           false,
		"[diff]external=x":                                                   false,
		"[merge \"x\"]driver=x":                                              false,
		"[merge]tool=x":                                                      false,
		"[pull]twohead=x":                                                    false,
		"[credential]helper=x":                                               false,
		"[filter \"x\"]clean=x":                                              false,
		"[url \"a\"]insteadOf=b":                                             false,
		"[http]proxy=x":                                                      false,
		"[http \"https://x\"]extraHeader=x":                                  false,
		"[protocol \"ext\"]allow=always":                                     false,
		"[include]path=x":                                                    false,
		"[includeIf \"gitdir:x\"]path=y":                                     false,
		"[pager]log=x":                                                       false,
		"[color]pager=true":                                                  true,
		"[color \"diff\"]meta=red":                                           true,
		"[init]templateDir=x":                                                false,
		"[init]defaultBranch=main":                                           true,
		"[uploadpack]packObjectsHook=x":                                      false,
		"[extensions]worktreeConfig=true":                                    true,
		"[extensions]other=true":                                             false,
		"[safe]directory=*":                                                  false,
		"[commit]template=x":                                                 false,
		"[sequence]editor=x":                                                 false,
		"[trailer \"x\"]command=x":                                           false,
		"[mailmap]file=x":                                                    false,
		"[lfs]url=x":                                                         false,
		"[lfs \"https://x\"]access=basic":                                    true,
		"[lfs \"customtransfer.x\"]path=evil":                                false,
	} {
		f, err := parseConfig([]byte(config))
		if err != nil || len(f.settings) != 1 {
			t.Errorf("%s: %v", config, err)
			continue
		}
		if key, value := safeIn(root)(f.settings[0]); (key && value) != want {
			t.Errorf("%s: safe %v, want %v", config, key && value, want)
		}
	}
	// A list and the keys that make git start programs never meet.
	for section, names := range safeKeys {
		for _, name := range strings.Fields(names) {
			key := strings.Replace(section, ".*", ".x", 1) + "." + name
			if KeyRuns(key) && !slices.Contains([]string{
				"core.worktree", "submodule.x.update", "remote.x.promisor", "remote.x.partialclonefilter",
				"extensions.partialclone", "gpg.format",
			}, key) {
				t.Errorf("%s is safe, and makes git start a program", key)
			}
		}
	}
}
