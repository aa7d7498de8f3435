package blackbox

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"codehand/server/replaytest"
)

// This file has the clients that make the calls of TestSEC02Races and TestRulesInRaces.

// racedStdio is the program over stdio; connect begins it.
func racedStdio(t *testing.T, settings ...[2]string) (work string, connect func() func(tool, args string) (string, error)) {
	t.Helper()
	p := newPlot(t)
	for _, s := range settings {
		p.env = append(p.env, s[0]+"="+s[1])
	}
	var kept atomic.Int64 // calls that could not put a file back, which leaves one for the next start to sweep
	t.Cleanup(func() {
		if left := p.left(); int64(len(left)) > kept.Load() {
			t.Errorf("left are %v, and %d calls said that they keep one", left, kept.Load())
		}
		if t.Failed() {
			p.kill(p.now)
			for line := range strings.Lines(p.now.Stderr.String()) {
				if !strings.Contains(line, "level=INFO") {
					t.Log(line)
				}
			}
		}
	})
	return p.work, func() func(tool, args string) (string, error) {
		calls := p.start().Calls()
		return func(tool, args string) (string, error) {
			text, err := calls(tool, args)
			if strings.HasPrefix(text, "! ROLLBACK_FAILED") {
				kept.Add(1)
			}
			return text, err
		}
	}
}

// racedHTTP is the program over HTTP, with as many clients as calls in flight, each with a session of its own: the calls of one
// session that write wait for each other, those of several meet.
func racedHTTP(t *testing.T, settings ...[2]string) (work string, connect func() func(tool, args string) (string, error)) {
	t.Helper()
	d := deploy(t)
	for _, s := range settings {
		d.set = append(d.set, s[0]+"="+s[1])
	}
	d.token = d.mint("--quota", "calls_per_minute=0", "--quota", "requests_per_minute=0")
	return d.work, func() func(tool, args string) (string, error) {
		url := d.serve().url + "/mcp"
		free := make(chan *replaytest.HTTPClient, racers)
		for range racers {
			free <- (&replaytest.HTTPClient{T: t, URL: url, Token: d.token}).Hello()
		}
		var ids atomic.Int64
		return func(tool, args string) (string, error) {
			c := <-free
			defer func() { free <- c }()
			call := func(tool, args string) string {
				text, failed := c.Call(strconv.FormatInt(ids.Add(1), 10), tool, args, "").Text()
				if failed {
					text = "! " + text
				}
				return text
			}
			text := call(tool, args)
			if !strings.HasPrefix(text, "! FILE_NOT_READ: ") && !strings.HasPrefix(text, "! FILE_CHANGED: ") {
				return text, nil
			}
			for _, path := range pathsIn(t, args) { // this session has not read it, or another one has changed it
				if text := call("read_file", replaytest.AsJSON(t, "file_path", path)); strings.Contains(text, outsideMark) {
					return text, nil
				}
			}
			return call(tool, args), nil
		}
	}
}

// pathsIn are the files that a call of an editing tool names.
func pathsIn(t *testing.T, args string) (paths []string) {
	t.Helper()
	type file struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	}
	var in struct {
		file
		Edits []file
	}
	must(t, json.Unmarshal([]byte(args), &in))
	for _, f := range append(in.Edits, in.file) {
		if path := f.File + f.Notebook; path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}
