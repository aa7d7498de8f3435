package doctor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"codehand/tools/results"
	"codehand/tools/sandbox"
)

// The eras, as a client of each begins.
const (
	legacy = "legacy" // initialize
	modern = "modern" // server/discover
)

// The messages of a client that wants the list of tools. The id of tools/list is 2.
const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"codehand-doctor","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	listTools   = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`

	modernVersion = "2026-07-28"
	modernMeta    = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernVersion + `",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"codehand-doctor","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}`
	discover        = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":` + modernMeta + `}`
	listToolsModern = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":` + modernMeta + `}`
)

// messages are what a client of an era sends.
func messages(era string) []string {
	if era == modern {
		return []string{discover, listToolsModern}
	}
	return []string{initialize, initialized, listTools}
}

// A launch is how a client starts a server.
type launch struct {
	command string // absolute
	args    []string
	env     []string
	dir     string // working directory
	url     string // of a server that runs elsewhere, in place of all this
	unknown string // the first variable of the entry whose value only its client knows; then nothing can be started
}

// A listing is what a server said.
type listing struct {
	tools   int
	bytes   int           // of the tools as JSON
	took    time.Duration // from the start until the tools were there
	name    string        // of the server; "": it did not say
	version string
}

func (l listing) String() string {
	return fmt.Sprintf("%d tools, %d tokens, in %d ms", l.tools, (l.bytes+3)/4, l.took.Milliseconds())
}

// What a server that was started did wrong.
var (
	errNoAnswer = errors.New("no answer")
	errNoExit   = errors.New("it did not end")
)

// keptErrors is how much of what a server writes to standard error is kept, in bytes.
const keptErrors = 4 << 10

// shake starts a server, lists its tools as a client of this era does, ends its input and waits until it has ended.
// errNoAnswer and errNoExit say that it took longer than p. The process and all that it started are gone when shake
// returns.
func (l launch) shake(ctx context.Context, era string, p patience) (listing, error) {
	s, err := l.start(ctx)
	if err != nil {
		return listing{}, err
	}
	begun := time.Now()
	said := make(chan answered, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		got, err := readListing(s.out, func() time.Duration { return time.Since(begun) })
		said <- answered{got, err}
		_, _ = io.Copy(io.Discard, s.out) // so that it can end
	})
	var stderr tail
	reading.Go(func() { _, _ = io.Copy(&stderr, s.errs) })
	// A server that reads nothing would hold this up until its end.
	go func() { _, _ = io.WriteString(s.in, strings.Join(messages(era), "\n")+"\n") }()
	got, err := s.await(ctx, said, p)
	s.end(ctx, &reading)
	if text := results.Line(strings.ToValidUTF8(stderr.String(), "?"), 300); err != nil && text != "" {
		err = fmt.Errorf("%w; its standard error: %s", err, text)
	}
	return got, err
}

// list is shake, tried once again if there was no answer: a machine that does much else starts a server late. Each try
// has p.all. ctx ends both.
func (l launch) list(ctx context.Context, era string, p patience) (listing, error) {
	return again(ctx, func() (listing, error) {
		ctx, cancel := context.WithTimeout(ctx, p.all)
		defer cancel()
		return l.shake(ctx, era, p)
	})
}

// again calls shake, and a second time if its error is errNoAnswer and ctx has not ended. The error says so.
func again(ctx context.Context, shake func() (listing, error)) (listing, error) {
	got, err := shake()
	if !errors.Is(err, errNoAnswer) || ctx.Err() != nil {
		return got, err
	}
	if got, err = shake(); errors.Is(err, errNoAnswer) {
		err = fmt.Errorf("tried twice: %w", err)
	}
	return got, err
}

type answered struct {
	listing listing
	err     error
}

// A started server, with our ends of its pipes.
type started struct {
	process   *sandbox.Process
	in        *os.File
	out, errs *os.File
}

// end ends the process, lets the readers of its output read what is there, and closes the pipes. Something that left
// the tree may still hold them: then readers are told so when ctx ends.
func (s *started) end(ctx context.Context, readers *sync.WaitGroup) {
	s.process.End(0)
	done := make(chan struct{})
	go func() {
		readers.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	s.close()
	<-done
}

func (s *started) close() {
	for _, f := range []*os.File{s.in, s.out, s.errs} {
		_ = f.Close() // twice for in
	}
}

func (l launch) start(ctx context.Context) (*started, error) {
	var ends [6]*os.File
	for i := 0; i < len(ends); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, errors.Join(err, closeAll(ends[:]))
		}
		ends[i], ends[i+1] = r, w
	}
	dir, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, errors.Join(err, closeAll(ends[:]))
	}
	process, err := sandbox.Start(ctx, sandbox.Cmd{Path: l.command, Args: l.args, Env: l.env, Dir: dir,
		Stdin: ends[0], Stdout: ends[3], Stderr: ends[5]})
	closed := errors.Join(dir.Close(), closeAll([]*os.File{ends[0], ends[3], ends[5]}))
	if err != nil {
		return nil, errors.Join(err, closeAll([]*os.File{ends[1], ends[2], ends[4]}))
	}
	s := &started{process: process, in: ends[1], out: ends[2], errs: ends[4]}
	if closed != nil {
		process.End(0)
		s.close()
		return nil, closed
	}
	return s, nil
}

func closeAll(files []*os.File) error {
	var all []error
	for _, f := range files {
		if f != nil {
			all = append(all, f.Close())
		}
	}
	return errors.Join(all...)
}

// await waits for the list and then for the end of the process.
func (s *started) await(ctx context.Context, said <-chan answered, p patience) (listing, error) {
	late := time.NewTimer(p.answer)
	defer late.Stop()
	var a answered
	select {
	case a = <-said:
	case <-late.C:
		return listing{}, fmt.Errorf("%w within %s", errNoAnswer, p.answer)
	case <-ctx.Done():
		return listing{}, fmt.Errorf("%w until the check's time was over", errNoAnswer)
	}
	_ = s.in.Close() // a server that is gone has closed its end
	late.Reset(p.exit)
	broken := a.err != nil && !errors.Is(a.err, io.EOF)
	select {
	case <-s.process.Done():
	case <-late.C:
		if broken {
			return a.listing, a.err
		}
		return a.listing, fmt.Errorf("%w within %s of the end of its input", errNoExit, p.exit)
	case <-ctx.Done():
		return a.listing, fmt.Errorf("%w after its input, until the check's time was over", errNoExit)
	}
	exit := s.process.Exit()
	switch {
	case a.err == nil && exit.Code != 0:
		return a.listing, fmt.Errorf("it answered, and ended with exit code %d", exit.Code)
	case errors.Is(a.err, io.EOF):
		return a.listing, fmt.Errorf("it ended with exit code %d before it listed its tools", exit.Code)
	}
	return a.listing, a.err
}

// maxLine is the longest answer that is read, in bytes.
const maxLine = 8 << 20

// readListing reads answers, one on each line, up to that of tools/list. io.EOF: there was none.
func readListing(r io.Reader, since func() time.Duration) (listing, error) {
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, maxLine)
	var got listing
	for scan.Scan() {
		line := bytes.TrimSpace(scan.Bytes())
		if len(line) == 0 {
			continue
		}
		done, err := got.add(line)
		if err != nil {
			return got, err
		}
		if done {
			got.took = since()
			return got, nil
		}
	}
	if err := scan.Err(); err != nil {
		return got, err
	}
	return got, io.EOF
}

// add reads one answer. done: it was that of tools/list.
func (l *listing) add(message []byte) (done bool, err error) {
	var answer struct {
		ID     json.RawMessage `json:"id"`
		Result struct {
			Tools      []json.RawMessage `json:"tools"`
			ServerInfo *struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"serverInfo"`
		} `json:"result"`
		Error *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(message, &answer); err != nil {
		return false, fmt.Errorf("its standard output is not JSON-RPC: %.80q", message)
	}
	if answer.Error != nil {
		return false, fmt.Errorf("it answered with error %d: %s", answer.Error.Code, answer.Error.Message)
	}
	if s := answer.Result.ServerInfo; s != nil {
		l.name, l.version = s.Name, s.Version
	}
	if string(answer.ID) != "2" {
		return false, nil
	}
	if len(answer.Result.Tools) == 0 {
		return false, errors.New("it has no tools")
	}
	for _, t := range answer.Result.Tools {
		l.bytes += len(t)
	}
	l.tools = len(answer.Result.Tools)
	return true, nil
}

// A tail keeps the last keptErrors bytes that were written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - keptErrors; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.b)) }

// output runs a program that needs no input, and returns what it prints.
func output(ctx context.Context, path string, args, env []string) (string, error) {
	s, err := launch{command: path, args: args, env: env, dir: string(os.PathSeparator)}.start(ctx)
	if err != nil {
		return "", err
	}
	_ = s.in.Close() // it reads nothing
	var out, errs tail
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&out, s.out) })
	reading.Go(func() { _, _ = io.Copy(&errs, s.errs) })
	select {
	case <-s.process.Done():
	case <-ctx.Done():
	}
	s.end(ctx, &reading)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if code := s.process.Exit().Code; code != 0 {
		return "", fmt.Errorf("%s ended with exit code %d: %s", path, code, errs.String())
	}
	return out.String(), nil
}

// handshakeFinding says how a handshake ended. what names the server; fix is what to do if it failed.
func handshakeFinding(what, version string, got listing, err error, p patience, fix string) Finding {
	switch {
	case errors.Is(err, errNoAnswer):
		return Finding{"handshake", Fail, what + ": " + err.Error(),
			"if the machine is busy, run doctor again when it is not; else " + fix}
	case errors.Is(err, errNoExit):
		return Finding{"handshake", Fail, what + ": " + err.Error() + "; clients would leave it running", fix}
	case err != nil:
		return Finding{"handshake", Fail, what + ": " + err.Error(), fix}
	}
	text := fmt.Sprintf("%s: %s; exited cleanly", what, got)
	switch {
	case got.name != "" && got.name != "codehand":
		return Finding{"handshake", Warn, text + "; the server calls itself " + got.name, fix}
	case got.version != "" && got.version != version:
		return Finding{"handshake", Warn, fmt.Sprintf("%s; it is version %s, this is %s", text, got.version, version),
			fix}
	case got.took > p.slow:
		return Finding{"handshake", Warn, text + ", which is slow",
			"see whether the disk is slow or a scanner of viruses reads the program each time, and run doctor again"}
	}
	return Finding{"handshake", OK, text, ""}
}
