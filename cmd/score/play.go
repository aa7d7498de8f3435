//go:build score

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A result is how a case went: passed, or the first expectation that did not hold. lacks: the server has no tool for
// it.
type result struct {
	passed, lacks bool
	expected      string // what did not hold
	request, said string // the last call before it, and what the server answered
}

// silence is what did not hold where a server said nothing.
const silence = "an answer within 60 s"

// tries is how often a case must fail: answers of some servers depend on how busy the machine is.
const tries = 4

// play plays the cases on one server, which is started again when it ends or falls silent. Those that failed are played
// again, on a server that knows nothing of the last time. Silence counts at once.
func play(ctx context.Context, s *server, cases []scenario, scratch string) []result {
	results := make([]result, len(cases))
	t := table{server: s, scratch: scratch}
	for n := range tries {
		for i, one := range cases {
			old := results[i]
			if ctx.Err() != nil || n > 0 && (old.passed || old.lacks || old.expected == silence) {
				continue
			}
			again := t.play(ctx, one)
			if n == 0 || again.passed {
				results[i] = again
			}
			if again.passed && n > 0 {
				fmt.Fprintf(os.Stderr, "score: %s: %s/%s passed at try %d\n", s.name, one.area, one.name, n+1)
			}
		}
		t.end()
	}
	return results
}

// A table is where one server is played.
type table struct {
	server  *server
	scratch string
	client  *client // nil: it does not run
}

// play plays one case in empty directories, and starts the server if need be.
func (t *table) play(ctx context.Context, one scenario) result {
	root, home := filepath.Join(t.scratch, "work"), filepath.Join(t.scratch, "home")
	dir, away := filepath.Join(root, one.area, one.name), filepath.Join(t.scratch, "outside", one.area, one.name)
	for _, d := range []string{dir, away, home} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return result{expected: err.Error()}
		}
	}
	// The directories themselves stay: shells of the first try may be in them.
	const empty = `chmod -R u+rwX "$@" && find "$@" -mindepth 1 -delete`
	if out, err := exec.CommandContext(ctx, "sh", "-c", empty, "sh", dir, away).CombinedOutput(); err != nil {
		return result{expected: err.Error() + ": " + string(out)}
	}
	if t.client == nil || !t.client.alive() {
		var err error
		for range 3 {
			if t.client, err = start(t.server, root, home); err == nil {
				break
			}
			// What the last case left in its home keeps it from starting: that case has failed, this one has not.
			if err := errors.Join(os.RemoveAll(home), os.MkdirAll(home, 0o755)); err != nil {
				break
			}
		}
		if err != nil {
			t.client = nil
			return result{expected: "the server starts", said: err.Error()}
		}
	}
	p := player{server: t.server, client: t.client, dir: dir, outside: away}
	r := p.play(ctx, one)
	// Large files go at once; the directory stays, since some shells are in it until the next command.
	_, _ = p.shell(ctx, "find . -xdev -type f -size +1M -delete")
	if p.silent {
		t.end()
	}
	return r
}

// end ends the server.
func (t *table) end() {
	if t.client != nil {
		t.client.end()
		t.client = nil
	}
}

// A player plays one case.
type player struct {
	server       *server
	client       *client
	dir, outside string
	request      string
	last         answer
	silent       bool
	limited      bool // files may not grow: the system may end the server for it, and only the files count then
}

func (p *player) play(ctx context.Context, c scenario) result {
	fail := func(expected string) result {
		return result{expected: expected, request: p.request, said: p.shown()}
	}
	for i := 0; i < len(c.steps); i++ {
		st := c.steps[i]
		switch st.kind {
		case '$', '?':
			if out, err := p.shell(ctx, st.text); err != nil && st.kind == '?' {
				return fail(strings.TrimSpace(st.text + " " + out))
			} else if err != nil {
				return result{expected: "setup: " + st.text + ": " + out}
			}
		case 'l':
			p.limited = true
			if err := p.client.limit(st.text); err != nil && p.client.alive() {
				return result{expected: err.Error()}
			}
		case '>':
			if !p.ask(st) {
				return result{lacks: true}
			}
		case '&':
			run := []step{st}
			for ; i+1 < len(c.steps) && c.steps[i+1].kind == '&'; i++ {
				run = append(run, c.steps[i+1])
			}
			if !p.askAll(run) {
				return result{lacks: true}
			}
		default:
			if p.silent || !holds(st, p.last) {
				return fail(string(st.kind) + " " + st.text)
			}
		}
		if p.silent {
			return fail(silence)
		}
	}
	return result{passed: true}
}

// holds says whether an answer is as a step expects.
func holds(st step, a answer) bool {
	switch st.kind {
	case '=', '~':
		for _, text := range st.args {
			escaped, _ := json.Marshal(text) // some answer in JSON
			found := strings.Contains(a.text, text)
			found = found || st.kind == '=' && strings.Contains(a.text, string(escaped[1:len(escaped)-1]))
			if found != (st.kind == '=') {
				return false
			}
		}
		return true
	case '!':
		return a.bad
	case 'o':
		return !a.bad
	case '<':
		n, err := strconv.Atoi(st.text)
		return err == nil && len(a.text) < n
	}
	return false
}

// ask makes the calls of a request one after another. It is false if the server has no tool for it.
func (p *player) ask(st step) bool {
	calls := p.server.calls(p.arguments(st), p.server.drive+p.dir)
	for _, one := range calls {
		p.request = written(one)
		a, err := p.client.call(p.server, one)
		if err != nil {
			a = answer{text: err.Error(), bad: true}
			p.silent = p.silent || !p.limited || !errors.Is(err, errEnded)
		}
		p.last = a
	}
	return calls != nil
}

// askAll makes the calls of several requests at once.
func (p *player) askAll(steps []step) bool {
	var wait sync.WaitGroup
	var mu sync.Mutex
	for _, st := range steps {
		calls := p.server.calls(p.arguments(st), p.server.drive+p.dir)
		if calls == nil {
			return false
		}
		p.request = written(calls[0])
		wait.Go(func() {
			a, err := p.client.call(p.server, calls[0])
			mu.Lock()
			defer mu.Unlock()
			p.last, p.silent = a, p.silent || err != nil
		})
	}
	wait.Wait()
	return true
}

func (p *player) arguments(st step) []string {
	a := make([]string, len(st.args))
	for i, text := range st.args {
		a[i] = strings.ReplaceAll(text, "$OUT", p.server.drive+p.outside)
	}
	return a
}

func (p *player) shell(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.WaitDelay = p.dir, time.Second
	cmd.Env = append(os.Environ(), "OUT="+p.outside)
	b, err := cmd.CombinedOutput()
	return clipped(string(b)), err
}

func (p *player) shown() string {
	text := clipped(p.last.text)
	if p.last.bad {
		text = "error: " + text
	}
	for _, d := range []string{p.dir, p.outside} {
		text = strings.ReplaceAll(text, d, filepath.Base(filepath.Dir(filepath.Dir(d))))
	}
	return text
}

func written(c call) string {
	b, _ := json.Marshal(c.args)
	return fmt.Sprintf("%s %s", c.tool, clipped(string(b)))
}

// clipped is the begin of a text, on one line.
func clipped(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + " …"
	}
	return text
}
