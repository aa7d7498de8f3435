package models_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/tools/agent/loop"
	"codehand/tools/agent/models"
	"codehand/tools/agent/modelstest"
)

var update = flag.Bool("update", false, "write the golden files")

const secret = "sk-planted-5e6f7a8b9c"

// clock is time that passes only where a client waits.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Wait(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.waits = append(c.waits, d)
	return ctx.Err()
}

// client makes a client of a scripted model whose waits take no time and are half of what they may be.
func client(t *testing.T, provider, url string, change func(*models.Options)) (*models.Client, *clock) {
	t.Helper()
	c := &clock{now: time.Unix(1800000000, 0)}
	o := models.Options{
		Provider: provider, BaseURL: url, Model: "m", Key: func() (string, error) { return secret + "\n", nil },
		Now: c.Now, Wait: c.Wait, Random: func() float64 { return 0.5 },
	}
	if change != nil {
		change(&o)
	}
	m, err := models.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, c
}

func both(t *testing.T, f func(t *testing.T, provider string)) {
	t.Helper()
	for _, provider := range []string{models.Anthropic, models.OpenAI} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			f(t, provider)
		})
	}
}

// golden holds a text against its file below testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and read the difference. Now:\n%s", path, got)
	}
}

var tools = []loop.Tool{
	{Name: "read_file", Description: "Reads a file <of text>.", ReadOnly: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}`)},
	{Name: "edit_file", Description: "Changes a file."},
}

// script is a task of more than 12 turns with all that may go wrong and be survived.
func script() []modelstest.Turn {
	read := func(id, path string) modelstest.Call {
		return modelstest.Call{ID: id, Name: "read_file", Arguments: `{"file_path":"` + path + `"}`}
	}
	edit := func(id string) modelstest.Call {
		return modelstest.Call{ID: id, Name: "edit_file", Arguments: `{"file_path":"a.go","old_string":"ä<b>","new_string":"\"\\"}`}
	}
	n := loop.Tokens{Input: 100, Output: 20, CacheRead: 1000}
	return []modelstest.Turn{
		{Text: "I look at three files – now.", Calls: []modelstest.Call{read("c1", "a.go"), read("c2", "b.go"), read("c3", "c.go")}, Tokens: n},
		{Status: 429, Header: map[string]string{"Retry-After": "7"}, Raw: `{"error":{"type":"rate_limit_error","message":"slow down"}}`},
		{Calls: []modelstest.Call{edit("c4")}, Tokens: n},
		{Text: "Again.", Calls: []modelstest.Call{edit("c5")}, Tokens: n},
		modelstest.Overloaded,
		modelstest.Overloaded,
		{Calls: []modelstest.Call{read("c6", "gone.go")}, Tokens: n},
		{Text: "This answer breaks in the middle of its text.", Break: true},
		{Text: "This answer ends in the middle of its text.", End: true},
		{Calls: []modelstest.Call{{ID: "c7", Name: "read_file", Arguments: `{"file_path":"a.go`}}, Tokens: n},
		{Calls: []modelstest.Call{{ID: "c8", Name: "read_file", Arguments: `["a.go"]`}}, Tokens: n},
		{Calls: []modelstest.Call{{ID: "c9", Name: "delete_all", Arguments: `{}`}}, Tokens: n},
		{Status: 500, Raw: "<html>oops</html>", Header: map[string]string{"Content-Type": "text/html"}},
		{Calls: []modelstest.Call{read("c10", "huge.txt")}, Tokens: n},
		{Calls: []modelstest.Call{{ID: "c11", Name: "read_file"}}, Tokens: n},
		{Calls: []modelstest.Call{read("c12", "picture.png")}, Tokens: n},
		{Calls: []modelstest.Call{read("c13", "a.go"), edit("c14"), read("c15", "b.go")}, Tokens: n},
		{Text: "Almost done.", Calls: []modelstest.Call{read("c16", "a.go")}, Tokens: n},
		{Text: "All is done.", Tokens: n},
	}
}

// do stands for the pipeline: it refuses the first edit, knows no gone.go and shortens what is long.
func do() func(ctx context.Context, c loop.Call) loop.Result {
	edits := 0
	return func(_ context.Context, c loop.Call) loop.Result {
		if c.Name == "edit_file" {
			edits++
			if edits == 1 {
				return loop.Result{IsError: true, Text: "PERMISSION_DENIED: a rule denies it; ask for another"}
			}
			return loop.Result{Text: "changed"}
		}
		var in struct {
			Path string `json:"file_path"`
		}
		_ = json.Unmarshal(c.Arguments, &in)
		switch in.Path {
		case "gone.go":
			return loop.Result{IsError: true, Text: "PATH_NOT_FOUND: there is no gone.go"}
		case "huge.txt":
			return loop.Result{Text: strings.Repeat("x", 300) + "\n[299,700 more characters: job_output]"}
		case "picture.png":
			return loop.Result{Images: []loop.Image{{MIME: "image/png", Data: []byte("\x89PNG")}}}
		case "":
			return loop.Result{Text: " "}
		}
		return loop.Result{Text: "content of " + in.Path}
	}
}

// The whole of a task is the same on both sides, byte for byte: what was sent, and what the run has kept.
func TestTask(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, provider string) {
		server := modelstest.Start(t, modelstest.Script(script()...))
		m, clock := client(t, provider, server.URL, nil)
		got, err := loop.Run(t.Context(), loop.Task{
			Model: m, System: "You are <careful> & brief.", Prompt: "Change a.go.", Tools: tools, Do: do(),
			Budget: loop.Budget{Turns: 50, Tokens: 100000, Time: time.Hour}, Effort: "low",
		})
		if err != nil || got.Stopped != loop.Done || got.Text != "All is done." || got.Turns != 13 || got.Calls != 16 {
			t.Fatalf("%s after %d turns and %d calls: %q, %v", got.Stopped, got.Turns, got.Calls, got.Text, err)
		}
		if got.Tokens != (loop.Tokens{Input: 1300, Output: 260, CacheRead: 13000}) {
			t.Errorf("tokens %+v", got.Tokens)
		}
		ms := time.Millisecond
		if want := []time.Duration{7500 * ms, 500 * ms, 1000 * ms, 500 * ms, 1000 * ms, 500 * ms}; !slices.Equal(clock.waits, want) {
			t.Errorf("waits %v", clock.waits)
		}
		var sent bytes.Buffer
		for _, r := range server.Requests() {
			if key := r.Header.Get("X-Api-Key") + r.Header.Get("Authorization"); key != map[string]string{models.Anthropic: secret, models.OpenAI: "Bearer " + secret}[provider] {
				t.Errorf("key %q", key)
			}
			sent.WriteString(r.Path + " ")
			sent.Write(r.Body)
		}
		golden(t, "task."+provider+".requests", sent.Bytes())
		kept, err := json.MarshalIndent(got.Messages, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "task."+provider+".transcript", append(kept, '\n'))
		if bytes.Contains(sent.Bytes(), []byte(secret)) || bytes.Contains(kept, []byte(secret)) {
			t.Error("the key is in a body")
		}
	})
}

func TestFull(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, provider string) {
		server := modelstest.Start(t, modelstest.Script(modelstest.Turn{Text: "Hm.", Calls: []modelstest.Call{{ID: "1", Name: "read_file"}}}, modelstest.Full))
		m, _ := client(t, provider, server.URL, nil)
		got, err := loop.Run(t.Context(), loop.Task{Model: m, Prompt: "p", Tools: tools, Do: do(), Budget: loop.Budget{Turns: 9, Tokens: 9e9, Time: time.Hour}})
		if err != nil || got.Stopped != loop.NoRoom || got.Text != "Hm." || len(server.Requests()) != 2 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A cancel while text arrives ends the run, and leaves no goroutine: leaktest looks.
func TestCancel(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, provider string) {
		server := modelstest.Start(t, modelstest.Script(modelstest.Turn{Text: strings.Repeat("on and on ", 20), Hang: true}))
		m, _ := client(t, provider, server.URL, nil)
		reason := errors.New("the person has had enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		heard, begun := make(chan string, 100), make(chan time.Time, 1)
		go func() {
			<-server.Hung
			<-heard
			begun <- time.Now()
			cancel(reason)
		}()
		got, err := loop.Run(ctx, loop.Task{Model: m, Prompt: "p", Budget: loop.Budget{Turns: 9, Tokens: 9, Time: time.Hour}, Step: func(s loop.Step) {
			if s.Kind == loop.StepText {
				heard <- s.Text
			}
		}})
		if !errors.Is(err, reason) || got.Stopped != loop.Cancelled || len(server.Requests()) != 1 {
			t.Errorf("%+v, %v, %d requests", got, err, len(server.Requests()))
		}
		t.Logf("it took %v", time.Since(<-begun))
	})
}

// A server that stops sending is given up after Silence, and asked again.
func TestSilence(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, provider string) {
		server := modelstest.Start(t, modelstest.Script(modelstest.Turn{Text: strings.Repeat("a", 100), Hang: true}, modelstest.Turn{Text: "b"}))
		m, _ := client(t, provider, server.URL, func(o *models.Options) { o.Silence = 200 * time.Millisecond })
		got, err := m.Turn(t.Context(), loop.Turn{Messages: hello}, nil)
		if err != nil || got.Parts[0].Text != "b" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

var hello = []loop.Message{{Role: loop.RoleUser, Parts: []loop.Part{{Text: "hello"}}}}

func TestRetries(t *testing.T) {
	t.Parallel()
	busy := func(header ...string) modelstest.Turn {
		turn := modelstest.Turn{Status: 429, Raw: `{"error":{"message":"slow"}}`, Header: map[string]string{"Date": "Mon, 23 Nov 2026 12:00:00 GMT"}}
		for i := 0; i < len(header); i += 2 {
			turn.Header[header[i]] = header[i+1]
		}
		return turn
	}
	fine := modelstest.Turn{Text: "fine"}
	half := func(list ...float64) (waits []time.Duration) {
		for _, s := range list {
			waits = append(waits, time.Duration(s*float64(time.Second)))
		}
		return waits
	}
	for _, c := range []struct {
		name  string
		turns []modelstest.Turn
		waits []time.Duration
		kind  loop.Kind // "": it succeeds
	}{
		{"seconds", []modelstest.Turn{busy("Retry-After", "3"), fine}, half(3.5), ""},
		{"part of a second", []modelstest.Turn{busy("Retry-After-Ms", "250"), fine}, half(0.75), ""},
		{"date", []modelstest.Turn{busy("Retry-After", "Mon, 23 Nov 2026 12:00:09 GMT"), fine}, half(9.5), ""},
		{"date that has passed", []modelstest.Turn{busy("Retry-After", "Mon, 23 Nov 2026 11:00:00 GMT"), fine}, half(0.5), ""},
		{"nonsense", []modelstest.Turn{busy("Retry-After", "-5"), busy("Retry-After", "soon"), fine}, half(0.5, 1), ""},
		{"an hour", []modelstest.Turn{busy("Retry-After", "3600"), fine}, nil, loop.Busy},
		{"at most six", []modelstest.Turn{busy(), busy(), busy(), busy(), busy(), busy(), fine}, half(0.5, 1, 2, 4, 8), loop.Busy},
		{"five minutes in all", []modelstest.Turn{busy("Retry-After", "110"), busy("Retry-After", "110"), busy("Retry-After", "110"), fine}, half(110.5, 111), loop.Busy},
		{"the server wants none", []modelstest.Turn{busy("X-Should-Retry", "false"), fine}, nil, loop.Busy},
		{"the server wants one", []modelstest.Turn{{Status: 400, Header: map[string]string{"X-Should-Retry": "true"}}, fine}, half(0.5), ""},
		{"no credit", []modelstest.Turn{{Status: 429, Raw: `{"error":{"code":"insufficient_quota"}}`}, fine}, nil, loop.Denied},
		{"wrong key", []modelstest.Turn{{Status: 401, Raw: `{"error":{"message":"Incorrect API key provided: ` + secret + `."}}`}}, nil, loop.Denied},
		{"unknown model", []modelstest.Turn{{Status: 404, Raw: `{"detail":"no model m"}`}}, nil, loop.Wrong},
		{"redirect", []modelstest.Turn{{Status: 307, Header: map[string]string{"Location": "http://127.0.0.1:1/"}}}, nil, loop.Wrong},
		// A wrong address was asked six times, and then said to answer too early.
		{"a page", []modelstest.Turn{{Raw: "<!doctype html>", Header: map[string]string{"Content-Type": "text/html; charset=utf-8"}}, fine}, nil, loop.Wrong},
		{"early end", []modelstest.Turn{{Text: strings.Repeat("x", 99), End: true}, fine}, half(0.5), ""},
		{"always broken", slices.Repeat([]modelstest.Turn{{Text: strings.Repeat("x", 99), Break: true}}, 9), half(0.5, 1, 2, 4, 8), loop.Broken},
		{"too large a body", []modelstest.Turn{{Status: 413, Raw: "<html>"}}, nil, loop.Full},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, provider string) {
				server := modelstest.Start(t, modelstest.Script(c.turns...))
				m, clock := client(t, provider, server.URL, nil)
				got, err := m.Turn(t.Context(), loop.Turn{Messages: hello}, nil)
				if !slices.Equal(clock.waits, c.waits) {
					t.Errorf("waits %v", clock.waits)
				}
				var failure *loop.Error
				switch {
				case c.kind == "" && (err != nil || got.Parts[0].Text != "fine"):
					t.Errorf("%+v, %v", got, err)
				case c.kind != "" && (!errors.As(err, &failure) || failure.Kind != c.kind):
					t.Errorf("%v", err)
				case c.kind != "" && strings.Contains(failure.Text, secret):
					t.Errorf("the key is in %q", failure.Text)
				}
			})
		})
	}
}

// A server that repeats the key in its answer does not make it part of a report.
func TestKeyInAnswer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, provider string) {
		server := modelstest.Start(t, modelstest.Script(modelstest.Turn{Text: "debug: " + secret + ", " + secret}))
		m, _ := client(t, provider, server.URL, nil)
		got, err := m.Turn(t.Context(), loop.Turn{Messages: hello}, nil)
		if err != nil || got.Parts[0].Text != "debug: [key], [key]" {
			t.Errorf("%+v, %v", got, err)
		}
		// Servers without a key are given a word, which an answer may hold.
		server = modelstest.Start(t, modelstest.Script(modelstest.Turn{Text: "ollama runs"}))
		m, _ = client(t, provider, server.URL, func(o *models.Options) { o.Key = func() (string, error) { return "ollama", nil } })
		if got, err = m.Turn(t.Context(), loop.Turn{Messages: hello}, nil); err != nil || got.Parts[0].Text != "ollama runs" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// What a server does not take is left out of the next requests, and nothing else is.
func TestAdapts(t *testing.T) {
	t.Parallel()
	refuse := func(text string) modelstest.Turn {
		data, _ := json.Marshal(map[string]any{"error": map[string]any{"message": text}})
		return modelstest.Turn{Status: 400, Raw: string(data)}
	}
	fine := modelstest.Turn{Text: "fine"}
	t.Run(models.OpenAI, func(t *testing.T) {
		t.Parallel()
		server := modelstest.Start(t, modelstest.Script(
			refuse("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
			refuse("Unknown field: stream_options"), refuse("reasoning_effort is not supported"), fine, fine,
			refuse("max_completion_tokens is too large: 8192"),
		))
		m, clock := client(t, models.OpenAI, server.URL, func(o *models.Options) { o.Tries = 1 })
		for range 2 {
			if _, err := m.Turn(t.Context(), loop.Turn{Messages: hello, Effort: "low"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		var failure *loop.Error
		if _, err := m.Turn(t.Context(), loop.Turn{Messages: hello, Effort: "low"}, nil); !errors.As(err, &failure) || failure.Kind != loop.Wrong {
			t.Error(err)
		}
		want := []string{
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":8192,"reasoning_effort":"low",`,
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":8192,"reasoning_effort":"low",`,
			`{"model":"m","stream":true,"max_completion_tokens":8192,"reasoning_effort":"low",`,
			`{"model":"m","stream":true,"max_completion_tokens":8192,`,
			`{"model":"m","stream":true,"max_completion_tokens":8192,`,
			`{"model":"m","stream":true,"max_completion_tokens":8192,`,
		}
		requests := server.Requests()
		if len(requests) != len(want) || clock.waits != nil {
			t.Fatalf("%d requests, waits %v", len(requests), clock.waits)
		}
		for i, r := range requests {
			if rest := `"messages":[{"content":"hello","role":"user"}]}` + "\n"; string(r.Body) != want[i]+rest {
				t.Errorf("request %d: %s", i, r.Body)
			}
		}
	})
	t.Run(models.Anthropic, func(t *testing.T) {
		t.Parallel()
		server := modelstest.Start(t, modelstest.Script(refuse("This model does not support the effort parameter."), fine))
		m, _ := client(t, models.Anthropic, server.URL, nil)
		if _, err := m.Turn(t.Context(), loop.Turn{Messages: hello, Effort: "max", MaxOutput: 99}, nil); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{
			`{"model":"m","max_tokens":99,"stream":true,"output_config":{"effort":"max"},"messages":`,
			`{"model":"m","max_tokens":99,"stream":true,"messages":`,
		} {
			if got := string(server.Requests()[i].Body); !strings.HasPrefix(got, want) {
				t.Errorf("request %d: %s", i, got)
			}
		}
	})
}

// Runs at once share a client and nothing else: each gets its own answers and keeps its own conversation.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, provider string) {
		server := modelstest.Start(t, func(r modelstest.Request) modelstest.Turn {
			_, name, _ := strings.Cut(string(r.Body), "I am ")
			name, _, _ = strings.Cut(name, ".")
			if n := strings.Count(string(r.Body), "seen by "+name); n < 3 {
				return modelstest.Turn{Calls: []modelstest.Call{{ID: "c" + name, Name: "read_file", Arguments: `{"file_path":"` + name + `"}`}}}
			}
			return modelstest.Turn{Text: "done by " + name}
		})
		m, _ := client(t, provider, server.URL, nil)
		var runs sync.WaitGroup
		for i := range 16 {
			name := "agent" + string(rune('a'+i))
			runs.Go(func() {
				got, err := loop.Run(t.Context(), loop.Task{
					Model: m, Prompt: "I am " + name + ".", Tools: tools, Budget: loop.Budget{Turns: 9, Tokens: 9e9, Time: time.Hour},
					Do: func(_ context.Context, c loop.Call) loop.Result {
						if !strings.Contains(string(c.Arguments), name) {
							t.Errorf("%s does %s", name, c.Arguments)
						}
						return loop.Result{Text: "seen by " + name}
					},
				})
				if err != nil || got.Text != "done by "+name || got.Calls != 3 || len(got.Messages) != 8 {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
			})
		}
		runs.Wait()
	})
}
