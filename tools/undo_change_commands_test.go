package tools

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// A commandModel is a git work tree in which random commands run.
type commandModel struct {
	*rig
	rng   *rand.Rand
	count int

	wanted, back int // changes to text files that were clean in git; how many of them were taken back
}

// In random sequences of commands, the changes to text files that were clean in git are taken back exactly, and nothing is
// taken back wrongly: each file is then what it was before the command, or what it was after it, and no content that was
// there before and after the command is lost.
func TestRandomCommandUndos(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed: it makes the work trees")
		}
		t.Skip("git is not installed: it makes the work trees")
	}
	s := *undoSeed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -undo.seed %d", s)
	wanted, back, refused := 0, 0, 0
	rng := rand.New(rand.NewPCG(s, 1))
	for i := range leaktest.Rounds(3, 200) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := &commandModel{rig: newRig(t), rng: rng}
			m.start()
			for range 6 {
				if !m.step() {
					refused++
				}
			}
			wanted, back = wanted+m.wanted, back+m.back
		})
	}
	t.Logf("%d of %d changes to clean text files taken back; %d undos refused or not offered", back, wanted, refused)
	least := 1 // few are wanted in the gate, and a busy machine may look too late for some of them
	if leaktest.Long() {
		least = wanted * 90 / 100
	}
	if back < least || wanted == 0 {
		t.Errorf("only %d of %d changes to clean text files were taken back", back, wanted)
	}
}

func (m *commandModel) git(args ...string) string {
	m.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	cmd.Dir = m.Dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// start makes a work tree with files of several kinds, and a branch where some differ.
func (m *commandModel) start() {
	m.git("init", "-q", "-b", "main", ".")
	for i := range 4 + m.rng.IntN(12) {
		m.write(fmt.Sprintf("%s/f%d.txt", []string{".", "d", "d/e", "x y"}[i%4], i), m.text())
	}
	m.write("bin.dat", "x\x00y")
	m.write("run.sh", "echo hi\n")
	m.write(".gitignore", "*.log\n")
	if m.rng.IntN(3) == 0 {
		m.write(".gitattributes", "d/** filter=rot\n")
	}
	m.git("add", "-A")
	m.git("commit", "-qm", "first")
	m.git("checkout", "-qb", "other")
	m.write("f0.txt", m.text())
	m.write("d/new.txt", m.text())
	m.git("rm", "-q", "run.sh")
	m.git("add", "-A")
	m.git("commit", "-qm", "second")
	m.git("checkout", "-q", "main")
	if m.rng.IntN(2) == 0 {
		m.git("gc", "-q")
	}
}

func (m *commandModel) text() string {
	m.count++
	return strings.Repeat(fmt.Sprintf("line of text %d\n", m.count), 1+m.rng.IntN(20))
}

// snapshot is every file with its content and mode, or where the link leads.
func (m *commandModel) snapshot() map[string]string {
	all := make(map[string]string)
	err := filepath.WalkDir(m.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(m.Dir, path)
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			all[name] = "link " + to
			return err
		}
		content, err := os.ReadFile(path)
		all[name] = fmt.Sprintf("%o %s", info.Mode(), content)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

// clean are the text files that git tracks, has unchanged and does not convert.
func (m *commandModel) clean(now map[string]string) map[string]bool {
	clean := make(map[string]bool)
	for name := range strings.SplitSeq(m.git("ls-files", "-z"), "\x00") {
		content, ok := now[name]
		clean[name] = ok && !strings.Contains(content, "\x00") && !strings.HasPrefix(content, "link ")
	}
	for name := range strings.SplitSeq(m.git("diff-files", "--name-only", "-z"), "\x00") {
		// with other stat data only, it may be clean as well; git says so once it has looked at the content
		clean[name] = clean[name] && m.git("diff", "--name-only", "--", name) == ""
	}
	if _, ok := now[".gitattributes"]; ok {
		for name := range clean {
			clean[name] = clean[name] && !strings.HasPrefix(name, "d/")
		}
	}
	return clean
}

// command makes a random one.
func (m *commandModel) command(files []string) string {
	file := func() string { return "'" + files[m.rng.IntN(len(files))] + "'" }
	m.count++
	parts := make([]string, 1+m.rng.IntN(3))
	for i := range parts {
		switch m.rng.IntN(23) {
		case 0:
			parts[i] = "rm -f " + file()
		case 1:
			parts[i] = fmt.Sprintf("mv %s moved%d.txt", file(), m.count)
		case 2:
			parts[i] = "chmod +x " + file()
		case 3:
			parts[i] = fmt.Sprintf("mkdir -p n%d/m && cp %s n%d/m/copy.txt", m.count, file(), m.count)
		case 4:
			parts[i] = "git checkout -q -f other"
		case 5:
			parts[i] = "git checkout -q -f main"
		case 6:
			parts[i] = "git stash -q"
		case 7:
			parts[i] = "git add -A && git -c user.name=a -c user.email=a@b commit -qm x"
		case 8:
			parts[i] = "rm -rf d"
		case 9:
			parts[i] = "mv d moved-d"
		case 10:
			parts[i] = "touch " + file()
		case 11:
			parts[i] = "ln -sf bin.dat " + file()
		case 12:
			parts[i] = "printf 'a\\0b' > " + file()
		case 13:
			parts[i] = "git reset -q --hard"
		case 14:
			parts[i] = "echo log > out.log"
		case 15:
			parts[i] = "sed -i s/text/TEXT/ *.txt"
		case 16:
			parts[i] = ": > " + file()
		case 17:
			parts[i] = "git mv -f " + file() + " " + file()
		case 18:
			from := file()
			parts[i] = fmt.Sprintf("cp %s kept%d.txt; rm -f %s", from, m.count, from)
		case 19:
			parts[i] = "git stash -qu"
		case 20:
			parts[i] = "git stash pop -q"
		default:
			parts[i] = fmt.Sprintf("echo more %d >> %s", m.count, file())
		}
	}
	return strings.Join(parts, "; ") + "; true"
}

// held are the contents of the files that git does not ignore: of those that it does nothing is known.
func held(files map[string]string) map[string]bool {
	all := make(map[string]bool)
	for name, file := range files {
		if mode, content, _ := strings.Cut(file, " "); mode != "link" && content != "" && !strings.HasSuffix(name, ".log") {
			all[content] = true
		}
	}
	return all
}

var offered = regexp.MustCompile(`undo_change ([0-9a-z]{16}) takes`)

// step runs a command and takes it back, and looks whether the files are as they should be. It says whether the undo was
// made.
func (m *commandModel) step() bool {
	before := m.snapshot()
	clean := m.clean(before)
	if len(before) == 0 {
		return true
	}
	command := m.command(slices.Sorted(maps.Keys(before)))
	raw, _ := json.Marshal(command)
	res, text := m.do("run_shell", fmt.Sprintf(`{"command":%s}`, raw))
	if res.Failed != "" {
		m.t.Fatalf("%s: %s", command, text)
	}
	after := m.snapshot()
	changed := make(map[string]bool)
	for name := range before {
		changed[name] = before[name] != after[name]
	}
	for name := range after {
		changed[name] = before[name] != after[name]
	}
	id := offered.FindStringSubmatch(text)
	outside := id != nil && m.rng.IntN(6) == 0
	if outside { // another program is faster
		m.write("f0.txt", m.text())
		after = m.snapshot()
	}
	counts := !outside && !strings.Contains(command, "stash pop") // what may come from a dropped stash is kept
	if counts {
		for name := range changed {
			if changed[name] && clean[name] && !strings.Contains(after[name], "\x00") &&
				!strings.HasPrefix(after[name], "link ") {
				m.wanted++
			}
		}
	}
	if id == nil {
		return false
	}
	res, undo := m.do("undo_change", fmt.Sprintf(`{"change_id":%q}`, id[1]))
	now := m.snapshot()
	was, had := held(before), held(after)
	for content := range was {
		if !outside && had[content] && !held(now)[content] {
			m.t.Errorf("%s\n%s\n%q was there before and after the command, and the undo lost it:\n%s", command, text, content, undo)
		}
	}
	names := maps.Clone(changed)
	for name := range now {
		names[name] = true
	}
	for name := range names {
		switch {
		case res.Failed != "" && now[name] != after[name]:
			m.t.Errorf("%s\n%s\nthe undo was refused, and yet %s changed from %q to %q:\n%s", command, text, name, after[name], now[name], undo)
		case now[name] != before[name] && now[name] != after[name]:
			m.t.Errorf("%s\n%s\n%s was %q, then %q, and now is %q:\n%s", command, text, name, before[name], after[name], now[name], undo)
		case res.Failed == "" && counts && changed[name] && clean[name] && now[name] == before[name] &&
			!strings.Contains(after[name], "\x00") && !strings.HasPrefix(after[name], "link "):
			m.back++
		}
	}
	if res.Failed != "" && !outside {
		m.t.Logf("%s\n%s\n%s", command, text, undo)
	}
	return res.Failed == ""
}
