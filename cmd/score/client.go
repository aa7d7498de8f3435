//go:build score

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// patience is how long an answer may take. Half of the clients wait no longer than this.
const patience = 60 * time.Second

var (
	errSilent = errors.New("no answer within 60 s")
	errEnded  = errors.New("the server has ended")
)

// A client speaks with a running server. Its methods may be called at once.
type client struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	mu      sync.Mutex
	last    int
	waiting map[int]chan json.RawMessage
	ended   chan struct{} // closed when the server's output ends
}

// start runs a server whose home is a directory of its own, and shakes hands.
func start(s *server, root, home string) (*client, error) {
	cmd := s.command(root)
	cmd.Dir = root
	cmd.Env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8",
		"SCORE_API_KEY=planted-secret-1", // a case looks whether commands see it
	}
	for _, name := range []string{"WINEPREFIX", "WINEDEBUG"} {
		if value, set := os.LookupEnv(name); set {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &client{cmd: cmd, in: in, waiting: map[int]chan json.RawMessage{}, ended: make(chan struct{})}
	go c.listen(out)
	_, err = c.request("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "score", "version": "1"},
	})
	if err == nil {
		err = c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	}
	for _, p := range prepared(s, root) {
		if err == nil {
			_, err = c.request("tools/call", map[string]any{"name": p.tool, "arguments": p.args})
		}
	}
	if err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

func prepared(s *server, root string) []call {
	if s.prepare == nil {
		return nil
	}
	return s.prepare(root)
}

func (c *client) listen(out io.Reader) {
	defer close(c.ended)
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     *int
			Method string
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil || m.Method != "" {
			continue
		}
		c.mu.Lock()
		if answer := c.waiting[*m.ID]; answer != nil {
			answer <- line
			delete(c.waiting, *m.ID)
		}
		c.mu.Unlock()
	}
}

func (c *client) send(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.in.Write(append(b, '\n'))
	return err
}

// request sends a request and waits for its answer.
func (c *client) request(method string, params any) (json.RawMessage, error) {
	answer := make(chan json.RawMessage, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = answer
	c.mu.Unlock()
	if err := c.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return nil, errEnded
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-answer:
		return a, nil
	case <-c.ended:
		select {
		case a := <-answer:
			return a, nil
		default:
			return nil, errEnded
		}
	case <-timer.C:
		return nil, errSilent
	}
}

// An answer is what a model would read.
type answer struct {
	text string
	bad  bool
}

// call calls a tool, and fetches the rest of an answer where the server has a tool for that.
func (c *client) call(s *server, one call) (answer, error) {
	raw, err := c.request("tools/call", map[string]any{"name": one.tool, "arguments": one.args})
	if err != nil {
		return answer{}, err
	}
	a := said(raw)
	for range 60 {
		if s.more == nil || s.more(a.text) == nil {
			break
		}
		next := s.more(a.text)
		raw, err := c.request("tools/call", map[string]any{"name": next.tool, "arguments": next.args})
		if err != nil {
			return answer{}, err
		}
		a = said(raw)
		if !strings.Contains(a.text, "IN PROGRESS") {
			break
		}
	}
	return a, nil
}

func said(raw json.RawMessage) answer {
	var m struct {
		Result struct {
			Content []struct{ Type, Text string }
			IsError bool
		}
		Error *struct{ Message string }
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return answer{text: fmt.Sprintf("%v in %.200s", err, raw), bad: true}
	}
	if m.Error != nil {
		return answer{text: m.Error.Message, bad: true}
	}
	a := answer{bad: m.Result.IsError}
	for _, c := range m.Result.Content {
		a.text += c.Text
		if c.Text == "" {
			a.text += "[" + c.Type + "]"
		}
	}
	return a
}

// limit says how large files may become that the server writes; "none" ends it.
func (c *client) limit(bytes string) error {
	if bytes == "none" {
		bytes = "unlimited"
	}
	pid := strconv.Itoa(c.cmd.Process.Pid)
	out, err := exec.Command("prlimit", "--pid", pid, "--fsize="+bytes+":unlimited").CombinedOutput()
	if err != nil {
		return fmt.Errorf("prlimit: %w: %s", err, out)
	}
	return nil
}

func (c *client) alive() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

func (c *client) end() {
	_ = c.in.Close()
	select {
	case <-c.ended:
	case <-time.After(5 * time.Second):
	}
	_ = c.cmd.Process.Kill()
	<-c.ended
	_ = c.cmd.Wait()
}
