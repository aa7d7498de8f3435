// Package checks says what a client that nobody here wrote must get from codehand, in three parts. Each program beside
// it brings a client. .ci/conformance/clients/checks.mjs says the same for TypeScript.
package checks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// every and patience are how often and how long something outside is looked for before a check fails.
	every    = 20 * time.Millisecond
	patience = 20 * time.Second
	// whole bounds a program, so that a hang is a failure.
	whole = 2 * time.Minute
)

// Options of a connection.
type Options struct {
	URL       string
	Token     string // "": none
	Transport string // http, sse
	Era       string // legacy, modern
}

// Elicit answers a question to the user, as the user of every check does. An action is `accept` or `decline`.
func Elicit(message string) (action string, content map[string]any) {
	switch {
	case strings.HasPrefix(message, "exit_plan_mode: "):
		return "accept", map[string]any{"decision": "approve, accept edits"}
	case strings.HasPrefix(message, "ask_user_question: "):
		return "accept", map[string]any{"q1": "b <c>", "q2": []string{"d", "e"}, "q3_other": "ünder\ntwo"}
	case strings.Contains(message, "decline"):
		return "decline", nil
	}
	return "accept", map[string]any{"username": "ada", "email": "ada@example.com"}
}

// A Progress is one note of a call.
type Progress struct {
	Done    float64
	Message string
}

// A Result is what a tool returned.
type Result struct {
	Text    string // of all blocks
	IsError bool
	Meta    map[string]any
}

// A CodeError is a JSON-RPC error.
type CodeError struct {
	Code int64
	Err  error
}

func (e *CodeError) Error() string { return fmt.Sprintf("%d: %v", e.Code, e.Err) }

// A Client is a connection of the client under test.
type Client interface {
	Server() string                              // the name that the server gave itself
	Tools(ctx context.Context) ([]string, error) // all that are listed
	// Call calls a tool. The progress goes to note, if that is not nil, from any goroutine. An error of JSON-RPC is a
	// *CodeError. When ctx ends the call is cancelled.
	Call(ctx context.Context, tool string, arguments, meta map[string]any, note func(Progress)) (Result, error)
	Cancels() bool // the server learns of a cancel; else a cancelled call ends with the connection only
	Close() error
}

// A run is one part.
type run struct {
	open    func(context.Context) (Client, error)
	o       Options
	work    string
	meta    map[string]any
	failed  bool
	lines   *bufio.Scanner
	pidfile string
}

// Main runs the part that the command line names, and does not return. Each check is a line, `ok NAME` or
// `FAIL NAME: why`; the exit code is 1 after a failure.
//
//	PROGRAM -url URL [-token T] -transport http|sse -era legacy|modern [-work DIR] [-session H] [-calls FILE] work|restart|ask
func Main(connect func(context.Context, Options) (Client, error)) {
	var o Options
	flag.StringVar(&o.URL, "url", "", "")
	flag.StringVar(&o.Token, "token", "", "")
	flag.StringVar(&o.Transport, "transport", "http", "")
	flag.StringVar(&o.Era, "era", "legacy", "")
	work := flag.String("work", "", "")
	handle := flag.String("session", "", "explicit session handle of each call")
	calls := flag.String("calls", "", "file with the calls of part work")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), whole)
	defer cancel()
	r := &run{o: o, work: *work, lines: bufio.NewScanner(os.Stdin), pidfile: filepath.Join(*work, "pid")}
	r.open = func(ctx context.Context) (Client, error) { return connect(ctx, o) }
	if *handle != "" {
		r.meta = map[string]any{"codehand/session": *handle}
	}
	c, err := r.open(ctx)
	if err != nil {
		fmt.Printf("FAIL connect: %v\n", err)
		os.Exit(1)
	}
	switch part := flag.Arg(0); part {
	case "work":
		r.working(ctx, c, *calls)
	case "restart":
		r.restarting(ctx, c)
	case "ask":
		r.asking(ctx, c)
	default:
		fmt.Printf("FAIL usage: no part %q\n", part)
		r.failed = true
	}
	if r.failed {
		os.Exit(1)
	}
	os.Exit(0)
}

func (r *run) check(name string, body func() error) {
	if err := body(); err != nil {
		r.failed = true
		fmt.Printf("FAIL %s: %v\n", name, err)
		return
	}
	fmt.Printf("ok %s\n", name)
}

// call calls a tool and wants a result without error.
func (r *run) call(ctx context.Context, c Client, tool string, arguments map[string]any, note func(Progress)) (string, error) {
	result, err := c.Call(ctx, tool, arguments, r.meta, note)
	if err == nil && result.IsError {
		err = errors.New(result.Text)
	}
	return result.Text, err
}

// until waits until holds is true.
func until(what string, holds func() bool) error {
	for limit := time.Now().Add(patience); !holds(); <-time.After(every) {
		if time.Now().After(limit) {
			return fmt.Errorf("%s: not within %v", what, patience)
		}
	}
	return nil
}

func has(text, want string) error {
	if !strings.Contains(text, want) {
		return fmt.Errorf("%q is not in %q", want, text)
	}
	return nil
}

// A known is one entry of calls.json.
type known struct {
	Tool      string
	Arguments map[string]any
	Has       string
	Error     bool
	Either    bool // a result or a refusal: only that it is answered counts
	Job       bool // its result names the job for $JOB
	Asks      bool // a person is asked, but over SSE, where that is refused
}

func (r *run) working(ctx context.Context, c Client, calls string) {
	var listed []string
	r.check("connect", func() error {
		if name := c.Server(); name != "codehand" {
			return fmt.Errorf("the server is %q", name)
		}
		return nil
	})
	r.check("list", func() (err error) {
		if listed, err = c.Tools(ctx); err == nil && len(listed) == 0 {
			err = errors.New("no tools")
		}
		return err
	})
	var table []known
	r.check("the table of calls", func() error {
		data, err := os.ReadFile(calls)
		if err != nil {
			return err
		}
		return json.Unmarshal(data, &table)
	})
	job, called := "", []string{}
	for _, k := range table {
		if m, is := c.(interface{ Mute() bool }); k.Asks && is && m.Mute() {
			k.Has, k.Error = "TOOL_DISABLED", true
		}
		name := "call " + k.Tool
		if k.Error {
			name += ", refused"
		}
		r.check(name, func() error {
			called = append(called, k.Tool)
			fill := strings.NewReplacer("$WORK", r.work, "$JOB", job)
			result, err := c.Call(ctx, k.Tool, filled(k.Arguments, fill).(map[string]any), r.meta, nil)
			if err != nil {
				return err
			}
			if k.Either {
				return nil
			}
			if result.IsError != k.Error {
				return errors.New(result.Text)
			}
			if k.Job {
				started, _ := result.Meta["codehand/job"].(map[string]any)
				if job, _ = started["id"].(string); job == "" {
					return fmt.Errorf("no job in %v", result.Meta)
				}
			}
			return has(result.Text, fill.Replace(k.Has))
		})
	}
	r.check("every listed tool was called", func() error {
		for _, name := range listed {
			if !slices.Contains(called, name) {
				return fmt.Errorf("%s was not: set Spec.Example of it, or add a call to testdata/clients/calls.json", name)
			}
		}
		return nil
	})
	r.check("progress", func() error { return r.progress(ctx, c) })
	r.check("cancel", func() (err error) {
		if err := r.cancel(ctx, c); err != nil || c.Cancels() {
			return err
		}
		c, err = r.open(ctx)
		return err
	})
	r.check("a call after the cancel", func() error {
		text, err := r.call(ctx, c, "run_shell", map[string]any{"command": "echo still here"}, nil)
		if err != nil {
			return err
		}
		return has(text, "still here")
	})
	r.check("close", c.Close)
}

// filled replaces the variables in every text below v.
func filled(v any, fill *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return fill.Replace(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = filled(v[i], fill)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name := range v {
			object[name] = filled(v[name], fill)
		}
		return object
	}
	return v
}

func (r *run) progress(ctx context.Context, c Client) error {
	var mu sync.Mutex
	var seen []Progress
	text, err := r.call(ctx, c, "run_shell", map[string]any{"command": "for i in 1 2 3; do echo line $i; sleep 0.8; done"}, func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, p)
	})
	if err != nil {
		return err
	}
	if err := has(text, "line 1\nline 2\nline 3"); err != nil {
		return err
	}
	// A client may hand notifications to another goroutine than the answer, and the first may be of a command that has not begun.
	if err := until("progress that shows a line", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(seen, func(p Progress) bool { return strings.Contains(p.Message, "line") })
	}); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	for i := 1; i < len(seen); i++ {
		if seen[i].Done <= seen[i-1].Done {
			return fmt.Errorf("progress does not grow: %v", seen)
		}
	}
	return nil
}

func (r *run) cancel(ctx context.Context, c Client) error {
	if runtime.GOOS == "windows" {
		return errors.New("processes are looked up with signal 0, which Windows does not have")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := r.call(ctx, c, "run_shell", map[string]any{
			"command": fmt.Sprintf("echo $$ >'%[1]s.new'; mv '%[1]s.new' '%[1]s'; sleep 300", r.pidfile),
		}, nil)
		ended <- err
	}()
	if err := until("the command starts", func() bool { _, err := os.Stat(r.pidfile); return err == nil }); err != nil {
		return err
	}
	data, err := os.ReadFile(r.pidfile)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return err
	}
	if !alive(pid) {
		return errors.New("the command does not run")
	}
	cancel()
	if err := <-ended; err == nil {
		return errors.New("the cancelled call returned a result")
	}
	if !c.Cancels() {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return until("the command ends", func() bool { return !alive(pid) })
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func (r *run) restarting(ctx context.Context, c Client) {
	file := filepath.Join(r.work, "kept.txt")
	r.check("read before the restart", func() error {
		text, err := r.call(ctx, c, "read_file", map[string]any{"file_path": file}, nil)
		if err != nil {
			return err
		}
		return has(text, "kept")
	})
	fmt.Println("RESTART")
	r.lines.Scan()
	// A connection that the old server held may not have seen its end yet, and what is posted over it is lost.
	http.DefaultClient.CloseIdleConnections()
	r.check("edit after the restart, unread since", func() (err error) {
		if r.o.Transport == "sse" { // its stream ended with the server
			if c, err = r.open(ctx); err != nil {
				return err
			}
		}
		if _, err := r.call(ctx, c, "edit_file", map[string]any{"file_path": file, "old_string": "kept", "new_string": "edited"}, nil); err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return has(string(data), "edited\n")
	})
	r.check("edit of a file that was never read is refused", func() error {
		_, err := r.call(ctx, c, "edit_file", map[string]any{"file_path": filepath.Join(r.work, "unread.txt"), "old_string": "x", "new_string": "y"}, nil)
		if err == nil {
			return errors.New("it was edited")
		}
		return has(err.Error(), "FILE_NOT_READ")
	})
}

func (r *run) asking(ctx context.Context, c Client) {
	r.check("progress, whole and in order", func() error {
		seen := make(chan float64, 100)
		if _, err := r.call(ctx, c, "test_tool_with_progress", map[string]any{}, func(p Progress) { seen <- p.Done }); err != nil {
			return err
		}
		// A client may hand notifications to another goroutine than the answer.
		for _, want := range []float64{0, 50, 100} {
			select {
			case got := <-seen:
				if got != want {
					return fmt.Errorf("got %v, want %v", got, want)
				}
			case <-time.After(patience):
				return fmt.Errorf("%v is missing", want)
			}
		}
		return nil
	})
	for _, action := range []string{"accept", "decline"} {
		r.check("elicitation, "+action, func() error {
			text, err := r.call(ctx, c, "test_elicitation", map[string]any{"message": "please " + action + " this"}, nil)
			if err != nil {
				return err
			}
			want := "User response: action=" + action
			if action == "accept" {
				want += `, content={"email":"ada@example.com","username":"ada"}`
			}
			return has(text, want)
		})
	}
	r.check("a capability that the client did not declare", func() error {
		_, err := r.call(ctx, c, "test_sampling", map[string]any{"prompt": "hello"}, nil)
		if err == nil {
			return errors.New("the tool found a model")
		}
		if code, ok := errors.AsType[*CodeError](err); r.o.Era == "modern" && (!ok || code.Code != -32021) {
			return err
		}
		return nil
	})
	r.check("close", c.Close)
}
