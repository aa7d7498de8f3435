package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/tools/editing"
	"codehand/tools/results"
	"codehand/tools/textedit/compare"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// A Now is a Made as it is on the disk at this moment.
type Now struct {
	*Made
	Added, Removed int      // lines, by the session
	Marks          []string // what else is to be said of it, each a clause
	Others         string   // what other programs changed of it, a clause; "": nothing
	Known          bool     // the diff can be shown

	old, new []byte // nil: there was no file, or is none
}

// Now compares a file with what it was before the session changed it. same: it is as it was, so there is nothing to
// show. Errors: of ctx, and *journal.UnreadError.
func (m *Made) Now(ctx context.Context, env tool.Env) (n Now, same bool, err error) {
	n.Made = m
	if m.Hidden {
		n.Marks = []string{"not shown: rules keep it from being read without a question"}
		n.sum()
		return n, false, nil
	}
	if files := m.last().Files; files > 0 {
		n.Marks = []string{wording.Plural(files, "new file", "new files"), "not shown: " + m.last().Why}
		return n, missing(env, m.Path), nil
	}
	at, err := look(ctx, env, m.Path)
	if err != nil {
		return n, false, err
	}
	first, last := m.before().file, m.last()
	mode := m.mode(at)
	if at.why == "" && !m.unsure() && at.sum == first.Before && mode == "" && m.From == "" {
		return n, true, nil
	}
	switch {
	case m.From != "":
		n.Marks = append(n.Marks, "moved from "+wording.ShownName(env, m.From))
	case first.Op == "create" && at.sum != "":
		n.Marks = append(n.Marks, "new file")
	case at.sum == "" && last.After == "" && at.why == "":
		n.Marks = append(n.Marks, "removed")
	}
	if mode != "" {
		n.Marks = append(n.Marks, "mode "+mode)
	}
	foreign := m.breaks() || at.why == "" && at.sum != last.After
	if at.sum == "" && last.After != "" {
		at.why = cmp.Or(at.why, "removed by the user, another program or a job")
	}
	switch err := n.load(ctx, env, at); {
	case at.why != "":
		n.Others = at.why
		n.sum()
	case m.unsure():
		n.Marks = append(n.Marks, "not shown: "+m.why())
		n.sum()
	case errors.Is(err, journal.ErrNoCopy), errors.Is(err, journal.ErrNoChange):
		n.Marks = append(n.Marks, "not shown: over 32 MiB, or the copy of what it was is gone")
		n.sum()
		if foreign {
			n.Others = alsoChanged
		}
	case err != nil:
		return n, false, err
	case foreign:
		n.Known = true
		n.blame(ctx, env)
	default:
		n.Known = true
		n.Added, n.Removed = filestate.Change{Old: n.old, New: n.new}.LinesChanged()
	}
	return n, false, nil
}

// sum counts the lines of all steps, where their sum is all that is known.
func (n *Now) sum() {
	for _, s := range n.steps {
		n.Added, n.Removed = n.Added+s.file.Added, n.Removed+s.file.Removed
	}
}

// load gets the content before. The one that is there now has been read.
func (n *Now) load(ctx context.Context, env tool.Env, at found) error {
	if n.new = at.content; at.why != "" || n.unsure() {
		return nil
	}
	s := n.before()
	if at.large || s.file.NoCopy {
		return journal.ErrNoCopy
	}
	var err error
	n.old, _, err = env.Files.Contents(ctx, s.entry.ID, s.file.Path)
	return err
}

// why says why the content of a step is not known.
func (m *Made) why() string {
	i := slices.IndexFunc(m.steps, step.unknown)
	return m.steps[i].file.Why
}

// breaks reports whether another program changed the file between two changes of the session.
func (m *Made) breaks() bool {
	for i, s := range m.steps[1:] {
		if s.file.Before != m.steps[i].file.After {
			return true
		}
	}
	return false
}

// mode is how the mode differs now from what it was, as 0644>0755; "": not, or not that the session changed it.
func (m *Made) mode(at found) string {
	var c modeChange
	for _, s := range m.steps {
		c.add(s.file.Mode)
	}
	if c.was == "" || at.sum == "" || at.mode == c.was || m.unsure() {
		return ""
	}
	return c.was + ">" + at.mode
}

// Diff is the lines that differ, in at most maxBytes.
func (n *Now) Diff(maxBytes int) string {
	if !n.Known {
		return ""
	}
	text, _ := editing.ContentDiff(n.old, n.new, maxBytes)
	return text
}

// Line names the file, with counts and marks.
func (n *Now) Line(env tool.Env) string {
	line := fmt.Sprintf("%s +%d -%d", wording.ShownName(env, n.Path), n.Added, n.Removed)
	if len(n.Marks) > 0 {
		line += " (" + strings.Join(n.Marks, "; ") + ")"
	}
	if n.Others != "" {
		line += " [" + n.Others + "]"
	}
	if len(n.IDs) > 0 {
		line += " (undo_change " + someOf(n.IDs) + ")"
	}
	return line
}

// alsoChanged is about a change that is in no entry of the session. A job's are not: it may run for ever.
const alsoChanged = "also changed by the user, another program or a job"

// blame counts the lines of the session and those of others apart, by who changed them last.
func (n *Now) blame(ctx context.Context, env tool.Env) {
	const unknownLines = alsoChanged + ", so some of these lines may be theirs"
	contents, mine := [][]byte{n.old}, []bool{false}
	add := func(content []byte, own bool) { contents, mine = append(contents, content), append(mine, own) }
	for i, s := range n.steps {
		before, after, err := env.Files.Contents(ctx, s.entry.ID, s.file.Path)
		if err != nil {
			n.Others = unknownLines
			n.sum()
			return
		}
		if i > 0 && s.file.Before != n.steps[i-1].file.After {
			add(before, false)
		}
		add(after, true)
	}
	add(n.new, false)
	for _, c := range contents {
		if !isText(c) {
			n.Others = alsoChanged
			return
		}
	}
	t := trace(contents, mine)
	if n.Added, n.Removed = t.added, t.removed; t.foreign+t.dropped == 0 {
		n.Others = alsoChanged + ", and that is gone again"
		return
	}
	n.Others = fmt.Sprintf("%s: +%d -%d of these lines", alsoChanged, t.foreign, t.dropped)
	if len(t.ranges) > 0 {
		n.Others += " are not of this session (" + strings.Join(t.ranges, ", ") + ")"
	} else {
		n.Others += " are not of this session"
	}
}

func isText(content []byte) bool { return !slices.Contains(content[:min(len(content), 8<<10)], 0) }

// A traced counts the lines that differ between the first and the last of several contents, by who changed them.
type traced struct {
	added, removed   int      // by the session
	foreign, dropped int      // by other programs: added and removed
	ranges           []string // of the lines that other programs added, in the last content
}

// trace follows each line through all contents. mine has for each of them whether the session made it.
func trace(contents [][]byte, mine []bool) (t traced) {
	const kept, own, other = 0, 1, 2
	now := linesOf(contents[0])
	who := make([]int, len(now))
	for i := 1; i < len(contents); i++ {
		next, by := linesOf(contents[i]), other
		if mine[i] {
			by = own
		}
		owners, at := make([]int, 0, len(next)), 0
		for _, c := range compare.Lines(now, next) {
			owners = append(owners, who[at:c.OldFrom]...)
			for _, w := range who[c.OldFrom:c.OldTo] {
				switch {
				case w == kept && by == own:
					t.removed++
				case w == kept:
					t.dropped++
				}
			}
			for range c.NewTo - c.NewFrom {
				owners = append(owners, by)
			}
			at = c.OldTo
		}
		now, who = next, append(owners, who[at:]...)
	}
	for i := 0; i < len(who); {
		end := i + 1
		for end < len(who) && who[end] == who[i] {
			end++
		}
		switch who[i] {
		case own:
			t.added += end - i
		case other:
			t.foreign += end - i
			t.addRange(i+1, end)
		}
		i = end
	}
	return t
}

// addRange notes lines of another program; of many ranges it keeps the first ones.
func (t *traced) addRange(first, last int) {
	const most = 10
	switch {
	case len(t.ranges) > most:
	case len(t.ranges) == most:
		t.ranges = append(t.ranges, "…")
	case first == last:
		t.ranges = append(t.ranges, fmt.Sprintf("line %d", first))
	default:
		t.ranges = append(t.ranges, fmt.Sprintf("lines %d-%d", first, last))
	}
}

func linesOf(content []byte) []string {
	if len(content) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
}

// A found is what is at a path now.
type found struct {
	content []byte // nil: no file, or it is large
	sum     string // "": no file
	mode    string
	large   bool
	why     string // nothing can be said of a content, a clause; "": it can
}

// look reads what is at a path, if it is still what the journal means by the path. The error is that of ctx.
func look(ctx context.Context, env tool.Env, path string) (found, error) {
	f, err := env.Open(path, workspace.Read)
	if err != nil {
		return unlooked(ctx, err)
	}
	defer f.Close()
	if f.Path != path {
		return found{why: "somebody else put a link there"}, nil
	}
	file, err := filestate.OpenRegular(f)
	if err != nil {
		return unlooked(ctx, err)
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil {
		return unlooked(ctx, err)
	}
	at := found{mode: fmt.Sprintf("%04o", info.Mode().Perm())}
	if info.Size() > journal.MaxKept {
		at.large = true
		sum, err := disk.StreamDigest(ctx, file, info.Size())
		if err != nil {
			return unlooked(ctx, err)
		}
		at.sum = sum.Hex()
		return at, nil
	}
	if at.content, err = readAll(file); err != nil {
		return unlooked(ctx, err)
	}
	at.sum = disk.DigestOf(at.content).Hex()
	return at, nil
}

// readAll never returns nil for a file that is there.
func readAll(file *os.File) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(file, journal.MaxKept+1))
	if err == nil && len(content) > journal.MaxKept {
		err = errors.New("file grows") // it was smaller a moment ago
	}
	return append([]byte{}, content...), err
}

// unlooked turns the error of reading a file into what can be said of the file.
func unlooked(ctx context.Context, err error) (found, error) {
	special, isSpecial := errors.AsType[*disk.NotRegularError](err)
	switch {
	case ctx.Err() != nil:
		return found{}, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist):
		return found{}, nil
	case errors.Is(err, disk.ErrDirectory):
		return found{why: "somebody else made a directory of it"}, nil
	case isSpecial:
		return found{why: "it is a " + special.Kind + " now, by somebody else"}, nil
	}
	return found{why: "it cannot be read now"}, nil
}

// missing reports that there is no file at a path.
func missing(env tool.Env, path string) bool {
	f, err := env.Open(path, workspace.Read)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	_, err = f.Dir.Lstat(f.Name)
	return errors.Is(err, fs.ErrNotExist)
}

// Room is how much of an answer is left for diffs beside what it says already.
func Room(form results.Form, text string) int {
	room, ok := form.Room(text)
	if !ok {
		return 0
	}
	least := room.Runes
	for _, n := range []int{room.Bytes, room.JSON} {
		if n > 0 {
			least = min(least, n)
		}
	}
	return least
}
