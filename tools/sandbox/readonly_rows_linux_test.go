package sandbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// otherwise are programs that a row of the corpora may begin with or contain, and that say something else in a profile:
// they describe the machine, which the profile hides, or the moment.
var otherwise = map[string]string{
	"ps": "sees its own processes only", "df": "sees its own mounts only", "date": "tells the time", "uptime": "tells the time",
	"free": "tells the memory of the moment", "du": "counts what it may see", "lscpu": "measures the processor",
}

// beyond is what a program says of the directory that contains the root, which is an empty one in a profile.
var beyond = regexp.MustCompile(`(?m)^(total .*|.* \.\.)$|(?m)  +`)

// readonlyRows are the commands of the corpora that only read.
func readonlyRows(t *testing.T) []string {
	t.Helper()
	var rows []string
	for _, name := range []string{"shell-commands.tsv", "shell-readonly.tsv"} {
		text, err := os.ReadFile("../../testdata/corpus/" + name)
		must(t, err)
		for line := range strings.Lines(string(text)) {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if fields[0] != "readonly" {
				continue
			}
			var command string
			must(t, json.Unmarshal([]byte(fields[1]), &command))
			rows = append(rows, command)
		}
	}
	return rows
}

// layRows makes a project with the files that the rows name.
func layRows(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"a.txt": "one\ntwo\nthree\n", "b.txt": "one\n2\nthree\n", "a.bin": "\x00\x01text\xff", "b.bin": "\x00\x02", "README.md": "# Project\n",
		"main.go": "package main\n\nfunc main() { println(1) }\n", "go.mod": "module example.com/x\n\ngo 1.26\n", "go.sum": "",
		"src/a.go": "package src\n\n// TODO: more\nfunc A() {}\n", "src/b.go": "package src\n", "tests/a_test.go": "package tests\n",
		"data.json": `{"a":[1,2,{"b":"x"}],"name":"n"}` + "\n", "data.csv": "id,name\n1,x\n2,y\n", "data2.csv": "1,z\n", "log.txt": "INFO a\nERROR b\n",
		"package.json": `{"name":"x","version":"1.0.0","scripts":{"test":"true"}}` + "\n", "my file.txt": "blank\n", "-odd-name.txt": "odd\n",
		"a/b.txt": "deep\n", "a.b64": "b25lCg==\n", "x.json": "{}\n", "ä.txt": "umlaut\n",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	git := func(args ...string) {
		c := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
		c.Dir, c.Env = dir, []string{"PATH=" + defaultPath, "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	git("init", "-qb", "main")
	git("add", ".")
	git("commit", "-qm", "one")
	git("tag", "v1")
	git("branch", "other")
	must(t, os.WriteFile(dir+"/a.txt", []byte("one\nTWO\nthree\n"), 0o644))
	git("commit", "-qam", "two")
	must(t, os.WriteFile(dir+"/b.txt", []byte("changed\n"), 0o644))
}

// Commands that only read say the same in the profile for them as without one, and in it no file changes.
func TestReadonlyRowsSame(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("needs git: apt-get install git")
		}
		t.Skip("needs git: apt-get install git")
	}
	rows := readonlyRows(t)
	dir, cache := filepath.Join(t.TempDir(), "project"), t.TempDir()
	must(t, os.Mkdir(dir, 0o755))
	layRows(t, dir)
	before := treeOf(t, dir)
	words := regexp.MustCompile(`[\w.-]+`)
	different, same := 0, 0
	for _, row := range leaktest.Some(40, rows) {
		command := strings.ReplaceAll(row, "/proj", dir)
		text := command + "\necho \"exit $?\""
		env := Neutral([]string{
			"PATH=" + defaultPath + ":/usr/local/go/bin", "HOME=" + dir, "LANG=C.UTF-8", "TZ=UTC", "GOCACHE=" + cache,
		})
		out := confined(t, LevelLimits, nil, dir, text, env...).text(t)
		in := confined(t, LevelFull, &Profile{Readable: []string{dir, cache}}, dir, text, env...).text(t)
		named := words.FindAllString(command, -1)
		if slices.Contains(named, "rg") { // its threads answer in any order
			in, out = inOrder(in), inOrder(out)
		}
		if slices.Contains(named, "--json") { // with how long it took
			in, out = numbers.ReplaceAllString(in, "0"), numbers.ReplaceAllString(out, "0")
		}
		switch {
		case beyond.ReplaceAllString(in, " ") == beyond.ReplaceAllString(out, " "):
			same++
		case slices.ContainsFunc(named, func(w string) bool { return otherwise[w] != "" }):
			different++
			t.Logf("%s: differs", command)
		default:
			t.Errorf("%s\nin the profile: %s\nwithout:        %s", command, in, out)
		}
	}
	t.Logf("%d rows say the same, %d differ as they must", same, different)
	if after := treeOf(t, dir); after != before {
		t.Errorf("files changed:\n%s\n%s", before, after)
	}
}

var numbers = regexp.MustCompile(`[\d.]+`)

func inOrder(text string) string {
	return strings.Join(slices.Sorted(strings.SplitSeq(text, "\n")), "\n")
}

// treeOf describes all files below a directory.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil {
			list.WriteString(path + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		}
		return err
	}))
	return list.String()
}
