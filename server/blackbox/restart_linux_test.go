package blackbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// The tests of this file end the built server, gently and not, and start it again over what it left.

// told sends a signal and waits until the server has said that it ends.
func (d *daemon) told(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	replaytest.Until(t, "the server says that it ends", func() bool { return strings.Contains(d.log.String(), "codehand: stopping; ") })
}

// exit waits for the end and returns the code.
func (d *daemon) exit() int {
	d.read.Wait()
	return d.cmd.ProcessState.ExitCode()
}

// stream opens what stays open: the GET stream of a session of its own, or a listen.
func (d *deployment) stream(url string, via *http.Client, modern bool) *coming {
	d.t.Helper()
	if modern {
		c := d.talk(url, via, wireKind{"http", "modern"})
		a := c.start(`{"jsonrpc":"2.0","id":"listen","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
		if first := a.must(); !strings.Contains(first, "acknowledged") {
			d.t.Fatalf("listen: %s", first)
		}
		return a
	}
	c := d.talk(url, via, wireKind{"http", "legacy"})
	r, err := via.Do(c.Request(d.t.Context(), http.MethodGet, c.URL, ""))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = r.Body.Close() }) // only read
	if r.StatusCode != http.StatusOK {
		d.t.Fatalf("GET: %s", r.Status)
	}
	return &coming{t: d.t, r: r, lines: newEvents(r.Body)}
}

// crowded is a deployment whose token may do more at once than one person does.
func crowded(t *testing.T, set ...string) *deployment {
	d := deploy(t, set...)
	d.token = d.mint("--admin", "--quota", "streams=1000", "--quota", "connections=1000", "--quota", "calls_per_minute=1000000", "--quota", "burst=1000000",
		"--quota", "requests_per_minute=1000000")
	return d
}

const getStreams, listenStreams = 100, 5

// TestDrain: at SIGTERM the server answers running calls, gives listens their result, ends all other streams properly,
// and refuses new requests with the time after which to come again. The process exits cleanly.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, busy := range []bool{false, true} {
		t.Run(map[bool]string{false: "idle", true: "busy"}[busy], func(t *testing.T) {
			t.Parallel()
			d := crowded(t, "CODEHAND_HTTP_DRAIN="+(2*hang).String()) // which is waited for if one stream does not end
			s := d.serve()
			via := over(t, d.address, nil)
			var gets, listens []*coming
			for range getStreams {
				gets = append(gets, d.stream(s.url, via, false))
			}
			for range listenStreams {
				listens = append(listens, d.stream(s.url, via, true))
			}
			sse := d.talk(s.url, via, wireKind{"sse", "legacy"})
			legacy, modern := d.talk(s.url, via, wireKind{"http", "legacy"}), d.talk(s.url, via, wireKind{"http", "modern"})
			running := hold(t, d.work, "running")
			var calls []*attempt
			if busy { // one in each session
				calls = append(calls, legacy.begin(legacy.CallBody("1", "run_shell", running.command("echo finished"), "")))
				replaytest.Until(t, "the command begins", func() bool { return len(d.recorded("call.start", "run_shell")) == 1 })
				for _, c := range []*talker{modern, sse} {
					calls = append(calls, c.begin(c.CallBody("1", "run_shell", running.command("echo finished"), "")))
				}
				replaytest.Until(t, "all calls come in", func() bool {
					return d.inFlight(s.url, d.token) == 2 && sse.posted.Load() == 2 // after initialize
				})
			}

			began := time.Now()
			s.told(t, syscall.SIGTERM)
			for _, a := range gets {
				if text, err := a.next(); !errors.Is(err, io.EOF) {
					t.Fatalf("a GET stream ends with %q, %v", text, err)
				}
			}
			for _, a := range listens {
				text, err := a.next()
				if err != nil || !strings.Contains(text, `"resultType":"complete"`) || !strings.Contains(text, `"id":"listen"`) {
					t.Fatalf("a listen ends with %q, %v", text, err)
				}
				if text, err := a.next(); !errors.Is(err, io.EOF) {
					t.Fatalf("after the result of a listen: %q, %v", text, err)
				}
			}
			t.Logf("%d GET streams and %d listens ended after %v", getStreams, listenStreams, time.Since(began))
			if busy {
				for method, path := range map[string]string{http.MethodPost: "/mcp", http.MethodGet: "/sse"} {
					r, err := via.Do(legacy.Request(t.Context(), method, s.url+path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
					if err != nil {
						t.Fatal(err)
					}
					_ = r.Body.Close() // the header says it
					if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
						t.Errorf("%s %s during the drain: %s, Retry-After %q", method, path, r.Status, r.Header.Get("Retry-After"))
					}
				}
				r, err := via.Get(s.url + "/readyz")
				if err != nil {
					t.Fatal(err)
				}
				if got := replaytest.ReadReply(t, r); got.Status != http.StatusServiceUnavailable {
					t.Errorf("readyz during the drain: %d %s", got.Status, got.Answer)
				}
				_ = r.Body.Close() // was read
				running.release()
				for _, p := range calls {
					if p.ended.Wait(); p.err != nil || p.failed || !strings.Contains(p.text, "finished") {
						t.Errorf("a call that ran: %v, %q", p.err, p.text)
					}
				}
			}
			if text, err := sse.events.next(); !errors.Is(err, io.EOF) {
				t.Errorf("the stream of SSE ends with %q, %v", text, err)
			}
			answered := time.Now()
			if code := s.exit(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			t.Logf("the process ended %v after the signal, %v after the last answer", time.Since(began), time.Since(answered))
			if took := time.Since(began); leaktest.Long() && !busy && took > 1500*time.Millisecond {
				t.Errorf("it took %v with nothing running, want at most 1.5 s", took)
			}
			d.auditHolds()
		})
	}
}

// TestDrainEnds: a call that takes longer than the drain is told so, and nothing of it is left.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	for _, k := range wireKinds {
		t.Run(k.transport+"/"+k.era, func(t *testing.T) {
			t.Parallel()
			const drain, cancelled = time.Second, 3 * time.Second // what calls get, and then once they are cancelled
			d := deploy(t, "CODEHAND_HTTP_DRAIN="+drain.String())
			s := d.serve()
			c := d.talk(s.url, over(t, d.address, nil), k)
			mark := newMark("71.")
			call := c.begin(c.CallBody("1", "run_shell", fmt.Sprintf(`{"command":"(trap '' TERM; setsid sleep %s) & sleep %s"}`, mark, mark), ""))
			replaytest.Until(t, "the command begins", func() bool { return marked(t, "sleep\x00"+mark) })
			began := time.Now()
			s.told(t, syscall.SIGTERM)
			call.ended.Wait()
			ended := time.Now()
			t.Logf("the call ended after %v with %q, %v", ended.Sub(began), call.text, call.err)
			switch {
			case call.err == nil:
				t.Error("it was answered")
			case k.transport == "sse": // its stream ends, no more
			case strings.Contains(call.err.Error(), `"code":-32603,"message":"server is shutting down"`):
			case strings.Contains(call.err.Error(), "no result: "), ended.Sub(began) < drain+cancelled,
				slices.ContainsFunc(d.recorded("call.done", "run_shell"), func(r auditRow) bool { return ended.Sub(r.T) > time.Second }):
				t.Error("it was not told that the server ends")
			default: // a busy machine needs longer than the server has to end the processes
				t.Log("the connection was cut before the call had ended")
			}
			if code := s.exit(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			t.Logf("the process ended after %v", time.Since(began))
			replaytest.Until(t, "nothing of the call is left", func() bool { return !marked(t, "sleep\x00"+mark) })
			d.auditHolds()
		})
	}
}

// TestSecondSignalHTTP: a second signal does not wait for calls, and leaves nothing of them.
func TestSecondSignalHTTP(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			d := deploy(t, "CODEHAND_HTTP_DRAIN=10m")
			s := d.serve()
			c := d.talk(s.url, over(t, d.address, nil), wireKind{"http", "legacy"})
			mark := newMark("72.")
			call := c.begin(c.CallBody("1", "run_shell", fmt.Sprintf(`{"command":"setsid sleep %s & sleep %s"}`, mark, mark), ""))
			replaytest.Until(t, "the command begins", func() bool { return marked(t, "sleep\x00"+mark) })
			s.told(t, syscall.SIGTERM)
			began := time.Now()
			if err := s.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := s.exit(); code != 128+int(sig) {
				t.Errorf("exit code %d, want %d", code, 128+int(sig))
			}
			t.Logf("the process ended %v after the second signal", time.Since(began))
			call.ended.Wait()
			replaytest.Until(t, "nothing of the call is left", func() bool { return !marked(t, "sleep\x00"+mark) })
		})
	}
}

// TestKilled: all that a session had is there again after a power failure of the process: its id, where it is, what it
// has read, how far it has read the output of a job, and what it may still read of it. The job is lost, and says so.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, k := range wireKinds {
		t.Run(k.transport+"/"+k.era, func(t *testing.T) {
			t.Parallel()
			d := crowded(t) // the job is looked at until it has begun
			s := d.serve()
			via := over(t, d.address, nil)
			const handle = `,"codehand/session":"the-same-one"`
			c := d.talk(s.url, via, k)
			must := func(tool, args string) string {
				t.Helper()
				text, failed := c.say("1", tool, args, handle)
				if failed {
					t.Fatalf("%s %s: %s", tool, args, text)
				}
				return text
			}
			file := filepath.Join(d.work, "sub", "f.txt")
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			replaytest.WriteFile(t, file, []byte("one\n"))
			must("run_shell", `{"command":"cd sub"}`)
			must("read_file", `{"file_path":"f.txt"}`)
			large := must("run_shell", `{"command":"seq 1 100000"}`)
			letEnd(t, d.work, "busy", "more")
			busy, more := hold(t, d.work, "busy"), hold(t, d.work, "more")
			job := must("run_shell", fmt.Sprintf(`{"command":"echo early; while [ -e '%s' ]; do sleep 0.02; done; echo late; while [ -e '%s' ]; do sleep 0.1; done","run_in_background":true}`, more.path, busy.path))
			job = job[strings.Index(job, "job_"):][:16]
			output := fmt.Sprintf(`{"job_id":%q}`, job)
			replaytest.Until(t, "the job begins", func() bool { return strings.Contains(must("job_output", output), "early") })
			more.release()
			log := ""
			replaytest.Until(t, "the job goes on", func() bool {
				found, err := filepath.Glob(filepath.Join(d.home, "state/codehand/sessions/*/*/jobs", job+".log"))
				for _, log = range found {
					if text, err := os.ReadFile(log); err == nil && strings.Contains(string(text), "late") {
						return true
					}
				}
				return err != nil
			})
			tokens := d.tokens()

			s.kill()
			s = d.serve()
			via.CloseIdleConnections() // they ended with the process, and who has not seen that yet sends no POST twice
			if k.transport == "sse" {  // its stream ended
				c = d.talk(s.url, via, k)
			}
			if got := must("run_shell", `{"command":"pwd"}`); !strings.HasPrefix(got, filepath.Dir(file)+"\n") && got != filepath.Dir(file) {
				t.Errorf("the current directory is %q", got)
			}
			must("edit_file", `{"file_path":"f.txt","old_string":"one","new_string":"two"}`)
			d.holds(file, "two\n")
			got := must("job_output", output)
			if !strings.HasPrefix(got, "lost after ") || !strings.HasSuffix(got, "\nlate") || strings.Contains(got, "early") {
				t.Errorf("the job: %q", got)
			}
			if got := must("job_output", output); !strings.Contains(got, "(no new output)") {
				t.Errorf("the job, again: %q", got)
			}
			if got := must("read_file", fmt.Sprintf(`{"file_path":%q}`, log)); !strings.Contains(got, "early") || !strings.Contains(got, "late") {
				t.Errorf("the log of the job: %q", got)
			}
			kept := large[strings.Index(large, "Full output: ")+len("Full output: "):]
			kept, _, _ = strings.Cut(kept, " Read it with ")
			if got := must("read_file", fmt.Sprintf(`{"file_path":%q,"offset":50000,"limit":1}`, kept)); !strings.HasPrefix(got, "50000\n") {
				t.Errorf("the kept result: %.200q", got)
			}
			if text, failed := c.say("1", "edit_file", fmt.Sprintf(`{"file_path":%q,"old_string":"two","new_string":"three"}`, file), `,"codehand/session":"another-one"`); !failed || !strings.HasPrefix(text, "FILE_NOT_READ") {
				t.Errorf("another session: %s", text)
			}
			if again := d.tokens(); again != tokens {
				t.Errorf("the tokens are\n%s\nwere\n%s", again, tokens)
			}
			d.auditHolds()
			d.clean(s)
		})
	}
}

// tokens is what an operator sees of the tokens, without when they were used.
func (d *deployment) tokens() string {
	d.t.Helper()
	out, err := d.codehand("token", "list", "--json").Output()
	if err != nil {
		d.t.Fatal(err)
	}
	return regexp.MustCompile(`"(last_)?used":[^,}]*`).ReplaceAllString(string(out), "")
}

// leftOvers are the temporary files in the workspace and in all that the server keeps.
func (d *deployment) leftOvers() (all []string) {
	d.t.Helper()
	for _, root := range []string{d.work, d.home} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it went while we looked
			}
			if err == nil && !e.IsDir() && strings.HasSuffix(path, ".tmp") {
				all = append(all, path)
			}
			return err
		})
		if err != nil {
			d.t.Fatal(err)
		}
	}
	return all
}

// clean has the server write to the workspace, and fails if what a killed one left is there afterwards. What is left
// counts as left when it is old enough, since from here a process in another container looks dead, too.
func (d *deployment) clean(s *daemon) {
	d.t.Helper()
	s.kill() // who has looked at a directory once does not look again
	old := time.Now().Add(-time.Hour)
	left := d.leftOvers()
	for _, path := range left {
		if err := os.Chtimes(path, old, old); err != nil {
			d.t.Fatal(err)
		}
	}
	s = d.serve()
	c := d.talk(s.url, over(d.t, d.address, nil), wireKind{"http", "legacy"})
	if text, failed := c.say("1", "write_file", `{"file_path":"last.txt","content":"x"}`, ""); failed {
		d.t.Fatal(text)
	}
	var now []string
	defer func() {
		if len(now) > 0 {
			d.t.Logf("temporary files: %q", now)
		}
	}()
	replaytest.Until(d.t, "no temporary file is left", func() bool { // a server at work has some of its own for a moment
		now = d.leftOvers()
		return len(now) == 0
	})
	d.t.Logf("%d temporary files were left by killed servers, and removed", len(left))
}

// TestKilledUnderLoad kills the server again and again while four sessions count in a file each. What was acknowledged
// is there, what was not is there or not, and nothing else; the session goes on with what it has read.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := leaktest.Rounds(3, 100)
	d := crowded(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	s := d.serve()
	var counters []*counter
	for i := range 4 {
		c := d.talk(s.url, over(t, d.address, nil), wireKinds[i%2]) // both eras of HTTP
		counters = append(counters, d.counter(c, fmt.Sprintf("counter-%d", i)))
	}
	edits, ahead := 0, 0
	for round := range rounds {
		var running sync.WaitGroup
		for _, x := range counters {
			running.Go(func() { x.run(t.Context()) })
		}
		for range 1 + random.IntN(40) { // a random number of answers, and a random time after the last one
			<-counters[random.IntN(len(counters))].ack
		}
		timer := time.NewTimer(time.Duration(random.IntN(4000)) * time.Microsecond)
		<-timer.C
		s.kill()
		running.Wait()
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
		d.tearAudit()
		s = d.serve()
		for _, x := range counters {
			edits += x.done
			ahead += x.settle()
		}
		d.auditHolds()
	}
	t.Logf("%d rounds, %d edits acknowledged, %d done and not acknowledged", rounds, edits, ahead)
	d.clean(s)
}

// tearAudit leaves half a line at the end of the audit of the server that was killed last: some kills do.
func (d *deployment) tearAudit() {
	d.t.Helper()
	replica, err := os.ReadFile(filepath.Join(filepath.Dir(d.audits()), "replica.id"))
	must(d.t, err)
	f, err := os.OpenFile(filepath.Join(d.audits(), "audit-"+strings.TrimSpace(string(replica))+".jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	must(d.t, err)
	_, err = f.WriteString(`{"v":1,"seq":99`)
	must(d.t, errors.Join(err, f.Close()))
}

// A counter is a session that counts in a file.
type counter struct {
	t      *testing.T
	talker *talker
	file   string
	handle string
	at     int           // acknowledged
	done   int           // of them in this round
	ack    chan struct{} // has one when an edit was acknowledged lately
}

// counter begins a session that counts.
func (d *deployment) counter(c *talker, name string) *counter {
	d.t.Helper()
	x := &counter{
		t: d.t, talker: c, file: filepath.Join(d.work, name+".txt"), handle: fmt.Sprintf(`,"codehand/session":%q`, name), ack: make(chan struct{}, 1),
	}
	replaytest.WriteFile(d.t, x.file, []byte(x.text(0)))
	if text, failed := c.say("1", "read_file", fmt.Sprintf(`{"file_path":%q}`, x.file), x.handle); failed {
		d.t.Fatal(text)
	}
	return x
}

// text is what the file holds. It is long, so that writing it takes a while.
func (x *counter) text(n int) string {
	return fmt.Sprintf("count %d.\n%s", n, strings.Repeat("The rest of the file, which no edit changes.\n", 20_000))
}

// count makes the next edit.
func (x *counter) count(ctx context.Context) (text string, failed bool, err error) {
	edit := fmt.Sprintf(`{"file_path":%q,"old_string":"count %d.","new_string":"count %d."}`, x.file, x.at, x.at+1)
	a, err := x.talker.try(ctx, x.talker.CallBody("1", "edit_file", edit, x.handle))
	if err != nil {
		return "", false, err
	}
	return a.outcome()
}

// run counts until the server is gone, or ctx ends.
func (x *counter) run(ctx context.Context) {
	for x.done = 0; ; x.done++ {
		text, failed, err := x.count(ctx)
		if err != nil {
			close(x.ack) // callers that wait for this one go on
			return
		}
		if failed {
			x.t.Errorf("edit %d: %s", x.at, text)
			close(x.ack)
			return
		}
		x.at++
		select {
		case x.ack <- struct{}{}:
		default:
		}
	}
}

// settle looks what became of the edit that got no answer, and returns 1 if it was done.
func (x *counter) settle() (ahead int) {
	x.t.Helper()
	x.ack = make(chan struct{}, 1)
	got, err := os.ReadFile(x.file)
	if err != nil {
		x.t.Fatal(err)
	}
	switch string(got) {
	case x.text(x.at):
		return 0 // and the next edit needs no read
	case x.text(x.at + 1):
	default:
		x.t.Fatalf("%d edits were acknowledged, and the file holds %.40q (%d bytes)", x.at, got, len(got))
	}
	// The session has seen that edit or not, depending on the moment. Its client sends it again, and then reads.
	if text, failed, err := x.count(x.t.Context()); err != nil || !failed {
		x.t.Fatalf("the edit that got no answer is done twice: %v, %s", err, text)
	}
	x.at++
	if text, failed := x.talker.say("1", "read_file", fmt.Sprintf(`{"file_path":%q,"limit":1}`, x.file), x.handle); failed {
		x.t.Fatal(text)
	}
	return 1
}
