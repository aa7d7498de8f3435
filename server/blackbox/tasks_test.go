package blackbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// The tests of this file have the built program keep todos and tasks, for several sessions and processes at once.

// A switchboard lets several callers use one connection at the same time.
type switchboard struct {
	*replaytest.Spawned
	mu      sync.Mutex
	last    int
	waiting map[string]chan replaytest.Reply // by request id; nil: the connection has ended
}

func newSwitchboard(p *replaytest.Spawned) *switchboard {
	s := &switchboard{Spawned: p, last: 1000, waiting: map[string]chan replaytest.Reply{}}
	go func() {
		for l := range p.Lines {
			var r replaytest.Reply
			if json.Unmarshal(l, &r) != nil || r.Method != "" {
				continue
			}
			s.mu.Lock()
			if c := s.waiting[string(r.ID)]; c != nil {
				c <- r
				delete(s.waiting, string(r.ID))
			}
			s.mu.Unlock()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.waiting {
			close(c)
		}
		s.waiting = nil
	}()
	return s
}

var errGone = errors.New("the process has ended")

// ask makes a request. errGone: its outcome is unknown.
func (s *switchboard) ask(method string, params map[string]any) (json.RawMessage, error) {
	answer := make(chan replaytest.Reply, 1)
	s.mu.Lock()
	if s.waiting == nil {
		s.mu.Unlock()
		return nil, errGone
	}
	s.last++
	id := strconv.Itoa(s.last)
	s.waiting[id] = answer
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.last, "method": method, "params": params})
	if err == nil {
		err = s.Send(string(b))
	}
	s.mu.Unlock()
	if err != nil {
		return nil, errGone
	}
	r, ok := <-answer
	switch {
	case !ok:
		return nil, errGone
	case r.Error != nil:
		return nil, errors.New(r.Error.Message)
	}
	return r.Result, nil
}

// do calls a tool; a refusal is an error.
func (s *switchboard) do(name, args string) (string, error) {
	raw, err := s.ask("tools/call", map[string]any{"name": name, "arguments": json.RawMessage(args)})
	if err != nil {
		return "", err
	}
	text, failed := replaytest.HTTPReply{Answer: `{"result":` + string(raw) + `}`}.Text()
	if failed {
		return "", errors.New(text)
	}
	return text, nil
}

// shows reads a resource of the session.
func (s *switchboard) shows(t *testing.T, uri string) string {
	t.Helper()
	raw, err := s.ask("resources/read", map[string]any{"uri": uri})
	must(t, err)
	return string(raw)
}

var createdTask = regexp.MustCompile(`^Task ([1-9][0-9]*) created: `)

// create makes a task and returns its id.
func (s *switchboard) create(subject string) (string, error) {
	text, err := s.do("task_create", fmt.Sprintf(`{"subject":%q,"description":"d"}`, subject))
	if err != nil {
		return "", err
	}
	m := createdTask.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("task_create says %q", text)
	}
	return m[1], nil
}

// sharing starts the built program over a shared directory of tasks.
func sharing(t *testing.T, dir string) *switchboard {
	t.Helper()
	path := replaytest.Program(t)
	return newSwitchboard(replaytest.Spawn(t, path, leaktest.Dir(t), "tasks-test", false, map[string]string{"tasks.directory": dir}))
}

// A taskFile is a task as its file holds it.
type taskFile struct {
	ID, Subject, Status, Owner string
	Blocks, BlockedBy          []string
}

// taskFiles reads what is in a directory of tasks, which must all be whole.
func taskFiles(t *testing.T, dir string) map[string]taskFile {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	must(t, err)
	all := map[string]taskFile{}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		must(t, err)
		var f taskFile
		if err := json.Unmarshal(raw, &f); err != nil || f.ID+".json" != filepath.Base(name) {
			t.Errorf("%s is torn: %v\n%s", name, err, raw)
		}
		all[f.ID] = f
	}
	return all
}

// linked checks that links stand at both ends.
func linked(t *testing.T, all map[string]taskFile) {
	t.Helper()
	for id, f := range all {
		for _, other := range f.Blocks {
			if !slices.Contains(all[other].BlockedBy, id) {
				t.Errorf("task %s blocks %s, which is not blocked by it", id, other)
			}
		}
		for _, other := range f.BlockedBy {
			if !slices.Contains(all[other].Blocks, id) {
				t.Errorf("task %s is blocked by %s, which does not block it", id, other)
			}
		}
	}
}

// TestTasksOfTwoProcesses: eight writers over two processes with one directory of tasks lose none of them and share no id,
// while each process keeps its own todos.
func TestTasksOfTwoProcesses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tasks")
	processes := []*switchboard{sharing(t, dir), sharing(t, dir)}
	const writers = 8
	each := leaktest.Rounds(5, 50)
	var mu sync.Mutex
	subjects := map[string]string{} // by id, of what was acknowledged
	var all sync.WaitGroup
	for w := range writers {
		p, name := processes[w%2], fmt.Sprint("process ", w%2)
		all.Go(func() {
			before := ""
			for i := range each {
				subject := fmt.Sprintf("%d.%d", w, i)
				id, err := p.create(subject)
				if err != nil {
					t.Errorf("create %s: %v", subject, err)
					return
				}
				mu.Lock()
				if other := subjects[id]; other != "" {
					t.Errorf("the id %s was given to %s and %s", id, other, subject)
				}
				subjects[id] = subject
				mu.Unlock()
				change := fmt.Sprintf(`{"taskId":%q,"status":"in_progress","owner":"%d"`, id, w)
				if before != "" {
					change += fmt.Sprintf(`,"addBlockedBy":[%q]`, before)
				}
				before = id
				if _, err := p.do("task_update", change+"}"); err != nil {
					t.Errorf("update %s: %v", id, err)
				}
				text, err := p.do("todo_write", fmt.Sprintf(`{"todos":[{"content":%q,"status":"pending"}]}`, name))
				if err != nil || text != "Todos updated (0 of 1 done).\n[ ] "+name {
					t.Errorf("todos of %s: %v %s", name, err, text)
				}
			}
		})
	}
	all.Wait()
	files := taskFiles(t, dir)
	if len(files) != writers*each {
		t.Errorf("%d tasks, want %d", len(files), writers*each)
	}
	for id, subject := range subjects {
		f := files[id]
		if owner, i, _ := strings.Cut(subject, "."); f.Subject != subject || f.Status != "in_progress" || f.Owner != owner || len(f.BlockedBy) == 0 && i != "0" {
			t.Errorf("task %s should be %s: %+v", id, subject, f)
		}
	}
	linked(t, files)
	lists := make([]string, 2)
	for i, p := range processes {
		lists[i] = p.shows(t, "codehand://tasks") // whole, however long
		if todos := p.shows(t, "codehand://todos"); !strings.Contains(todos, fmt.Sprint("process ", i)) || strings.Contains(todos, fmt.Sprint("process ", 1-i)) {
			t.Errorf("process %d has the todos %s", i, todos)
		}
	}
	if lists[0] != lists[1] || strings.Count(lists[0], `\"subject\"`) != writers*each {
		t.Errorf("the processes show\n%s\n\nand\n%s", lists[0], lists[1])
	}
}

// TestTasksAfterAKill: a process that is killed while it writes leaves no torn file and no id that is given again, and
// nothing that it has acknowledged is lost.
func TestTasksAfterAKill(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tasks")
	survivor := sharing(t, dir)
	rounds := leaktest.Rounds(4, 40)
	k := &ledgerOfTasks{t: t, subjects: map[string]string{}, gone: map[string]bool{}, doubt: map[string]bool{}}
	for round := range rounds {
		victim := sharing(t, dir)
		enough := make(chan struct{})
		acknowledged := 0
		var all sync.WaitGroup
		for w := range 4 {
			all.Go(func() {
				k.write(victim, fmt.Sprintf("%d.%d", round, w), 1000, func() {
					if acknowledged++; acknowledged == 8+round%5 {
						close(enough)
					}
				})
			})
		}
		all.Go(func() { k.write(survivor, fmt.Sprintf("%d.survivor", round), 3, func() {}) })
		<-enough
		must(t, victim.Cmd.Process.Kill())
		all.Wait()
		_ = victim.Cmd.Wait() // it was killed
		k.compare(taskFiles(t, dir))
	}
	id, err := survivor.create("the last one")
	must(t, err)
	files := taskFiles(t, dir)
	linked(t, files)
	for other := range k.subjects {
		if number(t, other) >= number(t, id) {
			t.Errorf("the id %s was given after %s", id, other)
		}
	}
	if list, err := survivor.do("task_list", "{}"); err != nil || strings.Contains(list, "damaged") || strings.Count(list, "\n") != len(files)-1 {
		t.Errorf("the list: %v\n%s", err, list)
	}
	t.Logf("%d kills, %d tasks acknowledged, %d calls in doubt", rounds, len(k.subjects), len(k.doubt))
	left, err := filepath.Glob(filepath.Join(dir, ".codehand-new"))
	if must(t, err); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

func number(t *testing.T, id string) int {
	t.Helper()
	n, err := strconv.Atoi(id)
	must(t, err)
	return n
}

// A ledgerOfTasks is what the processes have acknowledged.
type ledgerOfTasks struct {
	t        *testing.T
	mu       sync.Mutex
	subjects map[string]string // by id
	gone     map[string]bool   // deleted
	doubt    map[string]bool   // a deletion was sent and not answered
}

// write makes tasks, each blocked by the one before, and deletes all but the newest, until the process ends or turns are
// over. said runs under the ledger's lock.
func (k *ledgerOfTasks) write(p *switchboard, name string, turns int, said func()) {
	before := ""
	for i := range turns {
		subject := fmt.Sprintf("%s.%d", name, i)
		id, err := p.create(subject)
		if errors.Is(err, errGone) {
			return
		}
		k.mu.Lock()
		if other, given := k.subjects[id]; given || err != nil {
			k.t.Errorf("create %s: %v; the id %q was given to %q", subject, err, id, other)
		}
		k.subjects[id] = subject
		said()
		k.mu.Unlock()
		if before != "" {
			if _, err := p.do("task_update", fmt.Sprintf(`{"taskId":%q,"addBlockedBy":[%q]}`, id, before)); err != nil && !errors.Is(err, errGone) {
				k.t.Errorf("link %s: %v", id, err)
			}
			_, err := p.do("task_update", fmt.Sprintf(`{"taskId":%q,"status":"deleted"}`, before))
			k.mu.Lock()
			switch {
			case errors.Is(err, errGone):
				k.doubt[before] = true
			case err != nil:
				k.t.Errorf("delete %s: %v", before, err)
			default:
				k.gone[before] = true
			}
			k.mu.Unlock()
		}
		before = id
	}
}

// compare looks for what was acknowledged and is not so.
func (k *ledgerOfTasks) compare(files map[string]taskFile) {
	k.t.Helper()
	for id, subject := range k.subjects {
		f, there := files[id]
		switch {
		case k.gone[id] && there:
			k.t.Errorf("task %s was deleted and is there", id)
		case !k.gone[id] && !k.doubt[id] && f.Subject != subject:
			k.t.Errorf("task %s should be %s: %+v", id, subject, f)
		case there && f.Subject != subject:
			k.t.Errorf("the id %s was given to %s, too", id, f.Subject)
		}
	}
}

// A listKeeper is one conversation over HTTP that keeps lists.
type listKeeper struct {
	*replaytest.HTTPClient
	meta string
	own  string // a word that only its lists have
	last atomic.Int64
}

// do makes a call of this conversation; a refusal fails the test.
func (k *listKeeper) do(name, args string) string {
	k.T.Helper()
	got := k.Call(strconv.FormatInt(k.last.Add(1), 10), name, args, k.meta)
	text, failed := got.Text()
	if failed || text == "" {
		k.T.Errorf("%s %s: %d %s", name, args, got.Status, got.Answer)
	}
	return text
}

// todos are those of the conversation, as a resource shows them.
func (k *listKeeper) todos() string {
	k.T.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": k.withHandle(map[string]any{"uri": "codehand://todos"})})
	must(k.T, err)
	r := k.Request(k.T.Context(), http.MethodPost, k.URL, string(body))
	if k.Modern {
		r.Header.Set("Mcp-Name", "codehand://todos")
	}
	return k.HTTPClient.Do(r).Answer
}

// withHandle adds the handle of a conversation that has one.
func (k *listKeeper) withHandle(params map[string]any) map[string]any {
	params = k.Params(params)
	if k.meta != "" {
		meta, _ := params["_meta"].(map[string]any)
		meta["codehand/session"] = k.own
	}
	return params
}

// keepers are two conversations of one person in one server.
func keepers(d *deployment, url string, modern bool) []*listKeeper {
	var two []*listKeeper
	for _, own := range []string{"one-of-two", "two-of-two"} {
		k := &listKeeper{HTTPClient: &replaytest.HTTPClient{T: d.t, URL: url + "/mcp", Token: d.token, Modern: modern, Info: "tasks-test"}, own: own}
		if modern {
			k.meta = fmt.Sprintf(`,"codehand/session":%q`, own)
		} else {
			k.Hello()
		}
		two = append(two, k)
	}
	return two
}

// TestListsOfTwoConversations: conversations whose calls come in turns, eight at a time, keep their todos and tasks apart
// and lose none, also when the server is killed and started again.
func TestListsOfTwoConversations(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		t.Run(map[bool]string{false: "legacy", true: "modern"}[modern], func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			d.token = d.mint("--quota", "calls_per_minute=0", "--quota", "requests_per_minute=0")
			s := d.serve()
			two := keepers(d, s.url, modern)
			each := leaktest.Rounds(3, 30)
			var all sync.WaitGroup
			for w := range 8 {
				k := two[w%2]
				all.Go(func() {
					for i := range each {
						k.do("task_create", fmt.Sprintf(`{"subject":"%s %d.%d","description":"d"}`, k.own, w, i))
						if text := k.do("todo_write", fmt.Sprintf(`{"todos":[{"content":"%s","status":"in_progress"},{"content":"%d","status":"pending"}]}`, k.own, w)); !strings.Contains(text, "[>] "+k.own) {
							t.Errorf("todos of %s: %s", k.own, text)
						}
					}
				})
			}
			all.Wait()
			s.kill()
			d.serve()
			http.DefaultClient.CloseIdleConnections() // as in TestKilled
			for i, k := range two {
				list := strings.Split(k.do("task_list", "{}"), "\n")
				found := map[string]bool{}
				for _, line := range list {
					_, subject, _ := strings.Cut(line, "] ")
					found[subject] = strings.HasPrefix(subject, k.own)
				}
				if len(list) != 4*each || len(found) != 4*each || slices.Contains(slices.Collect(maps.Values(found)), false) {
					t.Errorf("%s has the tasks %q, want %d", k.own, list, 4*each)
				}
				if todos := k.todos(); !strings.Contains(todos, k.own) || strings.Contains(todos, two[1-i].own) {
					t.Errorf("%s has the todos %s", k.own, todos)
				}
				if text := k.do("task_create", `{"subject":"after","description":"d"}`); text != fmt.Sprintf("Task %d created: after", 4*each+1) {
					t.Errorf("after the restart: %s", text)
				}
			}
		})
	}
}

// TestSharedTasksOfPrincipals: with a directory of tasks the conversations of one person share a list, and no two persons.
func TestSharedTasksOfPrincipals(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tasks")
	d := deploy(t, "CODEHAND_TASKS_DIRECTORY="+dir)
	out, err := d.codehand("token", "new", "Some Body", "--mode", "acceptEdits").Output()
	must(t, err)
	s := d.serve()
	hers := keepers(d, s.url, false)
	d.token = strings.TrimSpace(string(out))
	his := keepers(d, s.url, false)
	hers[0].do("task_create", `{"subject":"hers","description":"d"}`)
	his[0].do("task_create", `{"subject":"his","description":"d"}`)
	if a, b := hers[1].do("task_list", "{}"), his[1].do("task_list", "{}"); a != "1 [pending] hers" || b != "1 [pending] his" {
		t.Errorf("she sees %q, he sees %q", a, b)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*", "1.json"))
	if must(t, err); len(names) != 2 || filepath.Base(filepath.Dir(names[1])) != "tester" {
		t.Errorf("the files are %q", names)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(filepath.Dir(names[0])); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of one has mode %v, %v", info.Mode(), err)
	}
}
