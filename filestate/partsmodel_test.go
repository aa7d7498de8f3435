package filestate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/leaktest"
)

// A partsModel is what the test knows of one large file: its bytes, the parts that were shown of it since its hash was
// known or another content was found, and the versions that were given.
type partsModel struct {
	disk   string
	shown  []shownPart         // that the session must remember
	hashed bool                // the session may know the whole hash of disk
	tokens map[string]tokenFor // by version
	served []string            // versions of contents that this session has replaced, with no foreign change since
}

// A shownPart is a range with the bytes that were shown.
type shownPart struct {
	span
	text string
}

func (p shownPart) holds(content string) bool {
	return p.To <= int64(len(content)) && content[p.From:p.To] == p.text
}

// tokenFor is the part that a version stands for, and the size of the content.
type tokenFor struct {
	shownPart
	size int
}

// fits says that the version is one of that content.
func (k tokenFor) fits(content string) bool { return k.size == len(content) && k.holds(content) }

// around says that next is old outside the part.
func (k tokenFor) around(old, next string) bool {
	rest := old[k.To:]
	return strings.HasPrefix(next, old[:k.From]) && strings.HasSuffix(next, rest) && len(next) >= int(k.From)+len(rest)
}

// TestRandomPartsOfLargeFiles views and changes parts of files that are too large to be hashed, with any kind of change
// in between. An edit is accepted only if all parts that were shown are unchanged. A version permits what it names and
// nothing else. Where no other program changed anything, no edit is refused.
func TestRandomPartsOfLargeFiles(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", s)
	m := &partsMachine{desk: largeDesk(t), rng: rand.New(rand.NewPCG(s, 1))}
	m.f.tokens = make(map[string]tokenFor)
	m.outside(m.content())
	for i := range 3000 {
		m.at = i
		switch op := m.rng.IntN(20); {
		case op < 7:
			m.view()
		case op < 11:
			m.edit("")
		case op < 15:
			m.edit(m.anyToken())
		case op < 16:
			m.settled("a")
			m.later()
		case op < 17:
			m.compare()
		default:
			m.change()
		}
	}
}

type partsMachine struct {
	desk
	rng   *rand.Rand
	f     partsModel
	at    int
	count int
}

// content is a new one of 20 to 60 bytes.
func (m *partsMachine) content() string {
	m.count++
	return fmt.Sprintf("%04d%s", m.count%10_000, strings.Repeat("abcdefg\n", 2+m.rng.IntN(6)))
}

func (m *partsMachine) span() span {
	from := m.rng.IntN(len(m.f.disk))
	return span{From: int64(from), To: int64(from + 1 + m.rng.IntN(min(12, len(m.f.disk)-from)))}
}

func (m *partsMachine) anyToken() string {
	tokens := slices.Sorted(func(yield func(string) bool) {
		for v := range m.f.tokens {
			if !yield(v) {
				return
			}
		}
	})
	if len(tokens) == 0 {
		return ""
	}
	return tokens[m.rng.IntN(len(tokens))]
}

// fresh says whether all that was shown is in its place.
func (m *partsMachine) fresh() bool {
	return !slices.ContainsFunc(m.f.shown, func(p shownPart) bool { return !p.holds(m.f.disk) })
}

func (m *partsMachine) view() {
	s := m.span()
	got, err := m.trySee("a", s)
	if err != nil {
		m.Fatalf("step %d: %v", m.at, err)
	}
	part := shownPart{s, m.f.disk[s.From:s.To]}
	if !m.fresh() {
		m.f.shown = nil
	}
	m.f.shown = append(m.f.shown, part)
	if len(part.text) == len(m.f.disk) {
		// Such a view is remembered by the whole hash, as after an edit: of another content none of it counts.
		m.f.shown, m.f.hashed = []shownPart{{span{From: 0, To: 0}, ""}}, true
	}
	switch v := string(got.Version); {
	case strings.HasPrefix(v, "r"):
		if want := fmt.Sprintf(":%d-%d", s.From, s.To); !strings.HasSuffix(v, want) {
			m.Fatalf("step %d: the version %s does not name %s", m.at, v, want)
		}
		m.f.tokens[v] = tokenFor{part, len(m.f.disk)}
	case !m.f.hashed && len(part.text) < len(m.f.disk):
		m.Fatalf("step %d: all was hashed for a view of %d bytes of a file that nobody had hashed", m.at, len(part.text))
	}
}

// edit replaces a byte of the file, with a version or by what is remembered.
func (m *partsMachine) edit(v string) {
	if len(m.f.disk) < 12 {
		m.outside(m.content())
	}
	at := int64(m.rng.IntN(len(m.f.disk)))
	m.count++
	next := m.f.disk[:at] + fmt.Sprintf("<%d>", m.count)[:1+m.rng.IntN(3)] + m.f.disk[at+1:]
	if next == m.f.disk {
		return
	}
	token, known := m.f.tokens[v]
	_, err := m.change1(next, v)
	switch {
	case err == nil && v == "" && !m.fresh():
		m.Fatalf("step %d: an edit went on though what was shown is not there any more", m.at)
	case err == nil && v == "" && len(m.f.shown) == 0:
		m.Fatalf("step %d: an edit went on though nothing was shown", m.at)
	case err == nil && v != "" && !slices.Contains(m.f.served, v):
		if !known || !token.fits(m.f.disk) || !token.around(m.f.disk, next) {
			m.Fatalf("step %d: version %s served an edit at %d of %q", m.at, v, at, m.f.disk)
		}
	case err == nil:
	case errors.Is(err, filestate.ErrPartRead):
		if v == "" || token.fits(m.f.disk) && token.around(m.f.disk, next) {
			m.Fatalf("step %d: version %s did not serve an edit at %d: %v", m.at, v, at, err)
		}
	case errors.Is(err, filestate.ErrNotRead):
		if v != "" || len(m.f.shown) > 0 {
			m.Fatalf("step %d: version %q: %v after %d views", m.at, v, err, len(m.f.shown))
		}
	default:
		wantStale(m, err)
		if v == "" && m.fresh() && !m.f.hashed {
			m.Fatalf("step %d: an edit is refused though all that was shown is there", m.at)
		}
		if v != "" && token.fits(m.f.disk) {
			m.Fatalf("step %d: version %s does not fit %q", m.at, v, m.f.disk)
		}
	}
	if err != nil {
		m.holds("a", m.f.disk)
		return
	}
	m.holds("a", next)
	for v, token := range m.f.tokens {
		if token.fits(m.f.disk) {
			m.f.served = append(m.f.served, v)
		}
	}
	// What was shown moved along; the ledger knows the whole hash, so only that counts until the next view.
	m.f.disk, m.f.hashed = next, true
	m.f.shown = []shownPart{{span{From: 0, To: 0}, ""}}
}

func (m *partsMachine) change1(next, v string) (filestate.Change, error) {
	return m.desk.change("a", func([]byte) ([]byte, error) { return []byte(next), nil }, version(filestate.Version(v)))
}

// change changes the file behind the ledger's back.
func (m *partsMachine) change() {
	next := m.f.disk
	at := m.rng.IntN(len(next))
	m.count++
	switch m.rng.IntN(5) {
	case 0:
		next = m.content()
	case 1:
		next = next[:at] + string(rune('A'+m.count%26)) + next[at+1:]
	case 2:
		next += "grown\n"
	case 3:
		next = next[:max(at, 12)]
	default: // the same bytes at another time
		m.age("a", time.Duration(m.rng.IntN(3))*time.Hour)
	}
	if next != m.f.disk {
		m.outside(next)
	}
}

// later waits for another time of the file system. Without it the second of two new files may have number, size and times
// of what the first one replaced.
func (m *partsMachine) later() {
	m.write("clock", "")
	tick(m, m.path("clock"))
}

func (m *partsMachine) outside(next string) {
	m.later()
	m.write("other", next)
	if m.rng.IntN(2) == 0 {
		m.age("other", time.Hour)
	}
	if err := os.Rename(m.path("other"), m.path("a")); err != nil {
		m.Fatal(err)
	}
	m.f.served = nil
	m.f.disk = next
}

func (m *partsMachine) compare() {
	got, err := m.l.Changed(m.Context(), m.path("a"))
	if err != nil {
		m.Fatal(err)
	}
	if len(got) == 0 && !m.fresh() || len(got) > 0 && m.fresh() && !m.f.hashed {
		m.Fatalf("step %d: changed are %d, and all that was shown is there: %v", m.at, len(got), m.fresh())
	}
}
