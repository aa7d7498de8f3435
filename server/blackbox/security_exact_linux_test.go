package blackbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unicode/utf16"

	"codehand/server/replaytest"
)

// An exactText is a file in one encoding: how its bytes are made of text, by this test's own hands.
type exactText struct {
	name  string
	mark  string
	spell func(text string) string
	head  string // of the first line, what tells the encoding
	old   string // characters that an edit replaces, in the encoding, and those that it writes
	new   string
}

func exactTexts() []exactText {
	plain := func(text string) string { return text }
	wide := func(order binary.AppendByteOrder) func(string) string {
		return func(text string) string {
			var raw []byte
			for _, unit := range utf16.Encode([]rune(text)) {
				raw = order.AppendUint16(raw, unit)
			}
			return string(raw)
		}
	}
	latin := func(text string) string {
		var raw []byte
		for _, r := range text {
			raw = append(raw, byte(r))
		}
		return string(raw)
	}
	gbk := strings.NewReplacer("这", "\xd5\xe2", "是", "\xca\xc7", "中", "\xd6\xd0", "文", "\xce\xc4", "件", "\xbc\xfe", "的", "\xb5\xc4",
		"配", "\xc5\xe4", "置", "\xd6\xc3", "不", "\xb2\xbb", "要", "\xd2\xaa", "删", "\xc9\xbe", "除", "\xb3\xfd", "新", "\xd0\xc2").Replace
	return []exactText{
		{"UTF-8", "", plain, "naïve 日本 😀", "é日", "è本"},
		{"BOM", "\xef\xbb\xbf", plain, "naïve 日本 😀", "é日", "è本"},
		{"UTF-16LE", "\xff\xfe", wide(binary.LittleEndian), "naïve 日本 😀", "é日😀", "è本"},
		{"UTF-16BE", "\xfe\xff", wide(binary.BigEndian), "naïve 日本 😀", "é日", "è本😀"},
		{"Latin-1", "", latin, "un café, une idée, déjà vu", "élève", "naïveté"},
		{"GBK", "", gbk, "这是中文的配置文件不要删除", "中文", "新的"},
		{"invalid bytes", "", plain, "\xff\x80 \xc3( \xed\xa0\x80 \x81", "one", "uno"},
	}
}

// An exactLayout is how the lines of a file end.
type exactLayout struct {
	name string
	end  func(line int) string
	last bool // the match is the last line, which has no end
}

func exactLayouts() []exactLayout {
	ends := [2]string{"\n", "\r\n"}
	return []exactLayout{
		{"LF", func(int) string { return "\n" }, false},
		{"CRLF", func(int) string { return "\r\n" }, false},
		{"mixed", func(line int) string { return ends[line%2] }, false},
		{"none at end", func(int) string { return "\r\n" }, true},
	}
}

// An exactCall is a call and what becomes of the file.
type exactCall struct {
	name, tool    string
	before, after string // bytes of the file
	args          map[string]any
}

// calls are the three ways to change a file of that text and layout. The bytes afterwards are put together of the parts
// that the match leaves alone and those that it is replaced by.
func (x exactText) calls(l exactLayout) []exactCall {
	line := func(n int, text string) string { return x.spell(text + l.end(n)) }
	top := x.mark + x.spell("# ") + x.spelled(x.head) + x.spell(l.end(0)) + line(1, "\tkey = 1  ") + line(2, "")
	first, second := x.spell("<")+x.spelled(x.old)+x.spell(l.end(3)), x.spell("two>")
	rest := x.spell(" key"+l.end(4)) + line(5, "$1 \\n 'key'") + line(6, "end")
	if l.last {
		rest = ""
	}
	file := top + first + second + rest
	changed := x.spell("<") + x.spelled(x.new) + x.spell(l.end(3)) + x.spell("$2 and more"+l.end(3)) + x.spell("%s>")
	old, add := "<"+x.old+"\ntwo>", "<"+x.new+"\n$2 and more\n%s>"
	renamed := func(s string) string { return strings.ReplaceAll(s, x.spell("key"), x.spell("name")) }
	return []exactCall{
		{"edit_file", "edit_file", file, top + changed + rest, map[string]any{"old_string": old, "new_string": add}},
		{"replace_all", "edit_file", file, renamed(top) + first + second + renamed(rest), map[string]any{"old_string": "key", "new_string": "name", "replace_all": true}},
		{"multi_edit", "multi_edit", file, renamed(top) + changed + renamed(rest), map[string]any{"edits": []map[string]any{
			{"old_string": old, "new_string": add}, {"old_string": "key", "new_string": "name", "replace_all": true}}}},
	}
}

// spelled is spell for text that may be bytes already.
func (x exactText) spelled(text string) string {
	if x.name == "invalid bytes" {
		return text
	}
	return x.spell(text)
}

// An exactTrait is something about a file that is not its content. Set makes it, and returns what else must be as before;
// an error that wraps errNoTrait says that the file system has no such thing.
type exactTrait struct {
	name string
	set  func(path string) (check func() string, err error)
}

var errNoTrait = errors.New("the file system does not have it")

func exactTraits() []exactTrait {
	mode := func(m os.FileMode) func(string) (func() string, error) {
		return func(path string) (func() string, error) { return nil, os.Chmod(path, m) }
	}
	attribute := func(name string, value []byte) func(string) (func() string, error) {
		return func(path string) (func() string, error) {
			err := syscall.Setxattr(path, name, value, 0)
			if errors.Is(err, syscall.ENOTSUP) {
				err = fmt.Errorf("%w: %s", errNoTrait, name)
			}
			return nil, err
		}
	}
	return []exactTrait{
		{"0644", mode(0o644)},
		{"0755", mode(0o755)},
		{"setgid", mode(0o755 | os.ModeSetgid)},
		{"setgid directory", func(path string) (func() string, error) {
			return nil, os.Chmod(filepath.Dir(path), 0o755|os.ModeSetgid)
		}},
		{"foreign owner and group", func(path string) (func() string, error) {
			if os.Getuid() != 0 {
				return nil, fmt.Errorf("%w: needs root", errNoTrait)
			}
			return nil, os.Chown(path, 54321, 54322)
		}},
		{"user attribute", attribute("user.codehand.test", []byte("kept \x00\xff"))},
		{"ACL", attribute("system.posix_acl_access", exactACL())},
		{"symlink", exactSymlink},
		{"hard link", exactHardLink},
	}
}

// exactACL lets one user write and another group read, in the form of the kernel: linux/posix_acl_xattr.h, version 2.
func exactACL() []byte {
	acl := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{0x01, 6, 0xffffffff}, {0x02, 6, 54321}, {0x04, 4, 0xffffffff}, {0x08, 4, 54322}, {0x10, 6, 0xffffffff}, {0x20, 0, 0xffffffff}} {
		acl = binary.LittleEndian.AppendUint16(acl, e.tag)
		acl = binary.LittleEndian.AppendUint16(acl, e.perm)
		acl = binary.LittleEndian.AppendUint32(acl, e.id)
	}
	return acl
}

// exactSymlink puts the file elsewhere and a link in its place.
func exactSymlink(path string) (func() string, error) {
	target := path + ".target"
	if err := os.Rename(path, target); err != nil {
		return nil, err
	}
	return func() string {
		if to, err := os.Readlink(path); err != nil || to != filepath.Base(target) {
			return fmt.Sprintf("the link leads to %q, %v", to, err)
		}
		return ""
	}, os.Symlink(filepath.Base(target), path)
}

// exactHardLink gives the file a second name, which keeps the old content.
func exactHardLink(path string) (func() string, error) {
	other := path + ".other"
	before, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return func() string {
		if now, err := os.ReadFile(other); err != nil || !bytes.Equal(now, before) {
			return fmt.Sprintf("the other name holds %q, %v", now, err)
		}
		return ""
	}, os.Link(path, other)
}

// exactFacts are mode, owner, group and all extended attributes of a file, access lists among them.
func exactFacts(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	stat := info.Sys().(*syscall.Stat_t)
	facts := fmt.Sprintf("%v uid %d gid %d", info.Mode(), stat.Uid, stat.Gid)
	names := make([]byte, 64<<10)
	n, err := syscall.Listxattr(path, names)
	if err != nil && !errors.Is(err, syscall.ENOTSUP) {
		return "", err
	}
	for name := range strings.SplitSeq(string(names[:max(n, 0)]), "\x00") {
		value := make([]byte, 64<<10)
		if name == "" {
			continue
		}
		size, err := syscall.Getxattr(path, name, value)
		if err != nil {
			return "", err
		}
		facts += fmt.Sprintf(" %s=%q", name, value[:size])
	}
	return facts, nil
}

// exactRefusals are the codes with which a change may be refused instead, since tools.md names the reason.
var exactRefusals = []string{"ENCODING_UNSUPPORTED", "ENCODING_MIX", "WRITE_FAILED"}

// A change leaves all else as it was: line ends, mark, encoding and every byte outside of the match, and mode, owner, group,
// attributes, access list and links (SEC-16).
func TestSEC16NothingElseChanges(t *testing.T) {
	t.Parallel()
	var count exactCount
	t.Run("matrix", func(t *testing.T) {
		for _, x := range exactTexts() {
			t.Run(x.name, func(t *testing.T) {
				t.Parallel()
				count.text(t, x)
			})
		}
	})
	t.Logf("%d cases; refused %d; not to be had here %d", count.cases.Load(), count.refused.Load(), count.lacking.Load())
}

type exactCount struct{ cases, refused, lacking atomic.Int64 }

// text runs all cases of one text in one process.
func (n *exactCount) text(t *testing.T, x exactText) {
	p, work := blackbox(t)
	for _, l := range exactLayouts() {
		for _, c := range x.calls(l) {
			for _, trait := range exactTraits() {
				dir := filepath.Join(work, fmt.Sprint(n.cases.Add(1)))
				must(t, os.Mkdir(dir, 0o755))
				answer, complaint := exactOne(t, p, filepath.Join(dir, "a.txt"), c, trait)
				switch name := l.name + ", " + c.name + ", " + trait.name; {
				case errors.Is(complaint, errNoTrait):
					n.lacking.Add(1)
					if os.Getenv("CI") != "" && os.Getuid() == 0 {
						t.Errorf("%s: %v; run it where it can be had", name, complaint)
					}
				case complaint != nil:
					t.Errorf("%s: %v\nanswer: %s", name, complaint, answer)
				case strings.HasPrefix(answer, "! "):
					n.refused.Add(1)
					t.Logf("%s is refused: %s", name, answer)
				}
			}
		}
	}
}

// exactOne makes one file, reads it, changes it, and compares it with what it should be.
func exactOne(t *testing.T, p *replaytest.Spawned, path string, c exactCall, trait exactTrait) (answer string, complaint error) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(c.before), 0o644))
	check, err := trait.set(path)
	if err != nil {
		return "", err
	}
	facts, err := exactFacts(path)
	must(t, err)
	args := map[string]any{"file_path": path}
	for k, v := range c.args {
		args[k] = v
	}
	if text := p.Must(t, "read_file", encode(t, map[string]any{"file_path": path})); strings.HasPrefix(text, "! ") {
		return text, errors.New("not read")
	}
	answer = p.Must(t, c.tool, encode(t, args))
	want := c.after
	if strings.HasPrefix(answer, "! ") {
		if want = c.before; !namesOne(answer, exactRefusals) {
			return answer, errors.New("refused without a reason")
		}
	}
	got, err := os.ReadFile(path)
	must(t, err)
	if string(got) != want {
		return answer, fmt.Errorf("content\n got %q\nwant %q", got, want)
	}
	if now, err := exactFacts(path); err != nil || now != facts {
		return answer, fmt.Errorf("%s, %v; before %s", now, err, facts)
	}
	if check != nil {
		if text := check(); text != "" {
			return answer, errors.New(text)
		}
	}
	return answer, nil
}

func namesOne(answer string, codes []string) bool {
	for _, code := range codes {
		if strings.HasPrefix(answer, "! "+code+":") {
			return true
		}
	}
	return false
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}
