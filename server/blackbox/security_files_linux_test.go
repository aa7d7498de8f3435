package blackbox

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

const (
	logFiles = 4 // that get a line per edit
	inFlight = 40
)

// A storm makes edits as fast as the program takes them, while that is killed. Each edit has a number, and leaves it in a
// file, so that one that is lost, torn or made twice shows.
type storm struct {
	*plot
	random   *rand.Rand
	next     int
	sent     map[int]stormEdit // by number
	acked    map[int]bool
	refusals []string
}

// A stormEdit leaves its number as a line of every one of files, or is the whole content of a new one.
type stormEdit struct {
	files []string
	whole bool
}

func logName(i int) string { return fmt.Sprintf("log%d.txt", i) }

const logHead = "head of the log\n"

func logBody() string { return strings.Repeat("The rest of the file, which no edit changes.\n", 800) }

func wholeContent(n int) string { return strings.Repeat(fmt.Sprintf("file %d\n", n), 1000) }

func newStorm(t *testing.T, flags ...string) *storm {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	x := &storm{plot: newPlot(t, flags...), random: rand.New(rand.NewPCG(seed, 0)), sent: map[int]stormEdit{}, acked: map[int]bool{}}
	for i := range logFiles {
		x.lay(logName(i), logHead+logBody())
	}
	return x
}

// round starts the program, sends edits without waiting, and kills it some random microseconds after a random number of
// answers.
func (x *storm) round() {
	x.Helper()
	s := x.start()
	for i := range logFiles {
		x.must(s, "read_file", "file_path", logName(i), "limit", 1)
	}
	edits := 1 + x.random.IntN(inFlight)
	answers, wait := x.random.IntN(edits+1), time.Duration(x.random.IntN(6000))*time.Microsecond
	first := x.next
	sent := make(chan struct{})
	plan := make([]func() error, edits)
	for i := range plan {
		plan[i] = x.draw(s)
	}
	go func() {
		defer close(sent)
		for _, send := range plan {
			if send() != nil {
				return // it is dead
			}
		}
	}()
	var said [][]byte
	for len(said) < answers {
		l, err := s.Receive()
		must(x, err)
		said = append(said, l)
	}
	letPass(wait)
	said = append(said, x.kill(s)...)
	<-sent
	for _, l := range said {
		if n, text, ok := reading(l); ok && n >= first && n < x.next {
			x.acked[n] = true
		} else if len(l) > 0 && l[len(l)-1] == '\n' && !strings.Contains(string(l), `"method"`) {
			x.refusals = append(x.refusals, text)
		}
	}
}

// draw makes up an edit, and returns what sends it.
func (x *storm) draw(s *replaytest.Spawned) func() error {
	n := x.next
	x.next++
	line := fmt.Sprintf("edit %d.\n", n)
	item := func(name string) map[string]any {
		return map[string]any{"file_path": name, "old_string": logHead, "new_string": logHead + line}
	}
	a := x.random.IntN(logFiles)
	switch x.random.IntN(5) {
	case 0:
		name := fmt.Sprintf("new%d/%d.txt", n%7, n)
		x.sent[n] = stormEdit{[]string{name}, true}
		return func() error { return x.post(s, n, "write_file", "file_path", name, "content", wholeContent(n)) }
	case 1:
		b := (a + 1 + x.random.IntN(logFiles-1)) % logFiles
		x.sent[n] = stormEdit{[]string{logName(a), logName(b)}, false}
		return func() error {
			return x.post(s, n, "multi_edit", "edits", []any{item(logName(a)), item(logName(b))})
		}
	default:
		x.sent[n] = stormEdit{[]string{logName(a)}, false}
		return func() error {
			return x.post(s, n, "edit_file", "file_path", logName(a), "old_string", logHead, "new_string", logHead+line)
		}
	}
}

// settle looks at all files after a start, and returns how many of the edits since from were made. An edit of several
// files is made in all of them or in none.
func (x *storm) settle(from int) (made int) {
	x.Helper()
	there := map[string]int{} // "file edit" -> how often
	for i := range logFiles {
		text, ok := strings.CutPrefix(x.held(logName(i)), logHead)
		text, whole := strings.CutSuffix(text, logBody())
		if !ok || !whole {
			x.Fatalf("%s is torn: %d bytes, begins with %.60q", logName(i), len(text), text)
		}
		for line := range strings.Lines(text) {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(line, "edit "), ".\n"))
			if err != nil || !slices.Contains(x.sent[n].files, logName(i)) {
				x.Fatalf("%s has the line %q", logName(i), line)
			}
			there[logName(i)+" "+strconv.Itoa(n)]++
		}
	}
	for n := from; n < x.next; n++ {
		e := x.sent[n]
		count := 0
		for _, name := range e.files {
			if !e.whole {
				count += there[name+" "+strconv.Itoa(n)]
				continue
			}
			switch x.held(name) {
			case wholeContent(n):
				count++
			case "":
			default:
				x.Fatalf("%s is torn: %d bytes", name, len(x.held(name)))
			}
		}
		switch {
		case count == len(e.files):
			made++
		case count != 0:
			x.Fatalf("edit %d is there %d times, in %v", n, count, e.files)
		case x.acked[n]:
			x.Fatalf("edit %d of %v was acknowledged and is lost", n, e.files)
		}
	}
	return made
}

// all says of the whole storm what settle says of a round: nothing that was there is gone or there twice.
func (x *storm) all(made int) {
	x.Helper()
	if got := x.settle(0); got != made {
		x.Errorf("%d edits are there at the end, %d were after their rounds", got, made)
	}
	var shapes []string
	for _, text := range x.refusals {
		shapes = append(shapes, strings.SplitN(text, ":", 2)[0])
	}
	if len(shapes) > 0 {
		x.Errorf("%d edits were refused: %v", len(shapes), slices.Compact(slices.Sorted(slices.Values(shapes))))
	}
}

// Kills at random moments of many edits, sent without waiting: after the next start every acknowledged edit is there,
// once, no file is torn, an edit of two files is in both or in none, and no temporary file is left (SEC-11).
func TestSEC11RandomKills(t *testing.T) {
	t.Parallel()
	want := leaktest.Rounds(100, 10_000)
	x := newStorm(t)
	rounds, made, ahead, left := 0, 0, 0, 0
	for ; made < want; rounds++ {
		from := x.next
		x.round()
		left += len(x.temps())
		s := x.start()
		if now := x.left(); len(now) > 0 {
			t.Fatalf("round %d: left after the start are %v", rounds, now)
		}
		x.kill(s)
		n := x.settle(from)
		made += n
		for i := from; i < x.next; i++ {
			if x.acked[i] {
				n--
			}
		}
		ahead += n
	}
	x.all(made)
	for i := range logFiles {
		x.agrees(logName(i))
	}
	t.Logf("%d kills, %d edits sent, %d made, of them %d acknowledged and %d in flight; %d temporary files at the kills; 0 torn, 0 lost, 0 double, 0 temporary files after the next start",
		rounds, x.next, made, len(x.acked), ahead, left)
	if entries := x.entries(); len(entries) != made {
		t.Errorf("%d changes are in the journal, %d were made", len(entries), made)
	}
}
