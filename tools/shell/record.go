package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"codehand/tools/sandbox"
)

const (
	// keptFor is how long a job that has ended can be read.
	keptFor = 24 * time.Hour
	// boardTime bounds a write of a record that no call waits for.
	boardTime = 5 * time.Second
	// maxCommand is how many bytes of a command a record holds: lists show the beginning.
	maxCommand = 4096
	// recordPrefix is the family of keys of records.
	recordPrefix = "job"
)

func recordKey(id string) string { return recordPrefix + "." + id }

// A record is what the Board holds of a command.
type record struct {
	Owner string    // the server process that started it (sandbox.Self)
	Found time.Time // when it was found to be lost; zero: it was not
	Info
}

// record returns what is to be written down now.
func (j *Job) record() record {
	r := record{Owner: j.shell.owner, Info: j.Info()}
	if len(r.Command) > maxCommand {
		r.Command = strings.ToValidUTF8(r.Command[:maxCommand], "")
	}
	return r
}

// report writes the record. An error has no reader: this process knows its own jobs without the Board.
func (j *Job) report() {
	j.recording.Lock()
	defer j.recording.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), boardTime)
	defer cancel()
	_ = j.shell.save(ctx, j.record())
}

func (s *Shell) save(ctx context.Context, r record) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.board.Set(ctx, recordKey(r.ID), value)
}

// find returns the job if this Shell has it, else its record. ErrUnknown: there is neither.
func (s *Shell) find(ctx context.Context, id string) (*Job, Info, error) {
	if !validID(id) {
		return nil, Info{}, ErrUnknown
	}
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	if j != nil {
		return j, j.Info(), nil
	}
	i, err := s.load(ctx, id)
	return nil, i, err
}

// load reads a record. A job that was running in a server process which is gone is lost, and the record says so from
// now on; of a command in the foreground nothing is left to know.
func (s *Shell) load(ctx context.Context, id string) (Info, error) {
	value, _, err := s.board.Get(ctx, recordKey(id))
	if err != nil {
		return Info{}, fmt.Errorf("read job record: %w", err)
	}
	var r record
	if value == nil || json.Unmarshal(value, &r) != nil || r.ID != id {
		return Info{}, ErrUnknown
	}
	lost := r.State == Running && r.Owner != s.owner && !sandbox.Alive(r.Owner)
	old := r.State != Running && time.Since(r.End) > keptFor && time.Since(r.Found) > keptFor
	switch {
	case old, lost && !r.Background && !r.Inside:
		s.forget(ctx, id)
		return Info{}, ErrUnknown
	case !r.Background && !lost:
		return Info{}, ErrUnknown
	case lost: // only this process knows what one of its Works has done
		r.State, r.Found, r.Background = Lost, time.Now(), true
		r.End, r.Lines = lastSign(s, r.Info)
		if r.Monitor {
			c, _ := oldEvents((&Job{id: id, shell: s}).base(), 0, 0) // of what can be read
			r.Events = c.Lines
		}
		_ = s.save(ctx, r) // the next reader finds the same
		(&Job{id: id, shell: s}).removeAllButLog()
	}
	return r.Info, nil
}

// lastSign is when a job of a process that is gone was last heard of, and the lines of its log: its record is from its
// start.
func lastSign(s *Shell, i Info) (end time.Time, lines int) {
	f, k, err := s.openLog(i)
	if err != nil {
		return time.Now(), 0
	}
	defer func() { _ = f.Close() }() // only read
	if info, err := f.Stat(); err == nil && info.ModTime().After(i.Start) {
		end = info.ModTime()
	} else {
		end = i.Start
	}
	lines, _ = k.count(f, 0, k.size) // of what can be read
	return end, lines
}

// forget removes record and files of a job that is too old.
func (s *Shell) forget(ctx context.Context, id string) {
	j := &Job{id: id, shell: s}
	j.removeAllButLog()
	removeFile(j.base() + logSuffix)
	removeFile(j.base() + eventSuffix)
	_ = s.board.Delete(ctx, recordKey(id)) // it expires
}

func (j *Job) removeAllButLog() {
	j.removeSpools()
	j.shell.script.cleanUp(j.base())
}

// List returns the session's jobs, newest first: running ones and those that ended in the last 24 h.
func (s *Shell) List(ctx context.Context) ([]Info, error) {
	s.dropOld(ctx)
	keys, err := s.board.Keys(ctx, recordPrefix)
	if err != nil {
		return nil, fmt.Errorf("list job records: %w", err)
	}
	s.mu.Lock()
	jobs := s.known()
	s.mu.Unlock()
	var list []Info
	own := map[string]bool{}
	for _, j := range jobs {
		own[j.id] = true
		if i := j.Info(); i.Background {
			list = append(list, i)
		}
	}
	for _, key := range keys {
		id := strings.TrimPrefix(key, recordPrefix+".")
		if own[id] || !validID(id) {
			continue
		}
		i, err := s.load(ctx, id)
		if errors.Is(err, ErrUnknown) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	sortNewest(list)
	return list, nil
}

// dropOld forgets own jobs that ended too long ago.
func (s *Shell) dropOld(ctx context.Context) {
	s.mu.Lock()
	jobs := s.known()
	s.mu.Unlock()
	for _, j := range jobs {
		if i := j.Info(); i.Background && i.State != Running && time.Since(i.End) > keptFor {
			s.drop(j)
			s.forget(ctx, j.id)
		}
	}
}

// Await returns when the job has ended, at until, or when ctx ends (without ending the job).
func (s *Shell) Await(ctx context.Context, id string, until time.Time) (Info, error) {
	j, i, err := s.find(ctx, id)
	if err != nil {
		return i, err
	}
	if j != nil {
		err = waitUntil(ctx, j.ended, until)
		return j.Info(), err
	}
	for err == nil && i.State == Running && (until.IsZero() || time.Now().Before(until)) {
		if err = waitUntil(ctx, nil, nextLook(until)); err == nil {
			i, err = s.load(ctx, id)
		}
	}
	return i, err
}

// Last returns the last line of each stream of a job of this process; "": none yet, or the job is of another one.
func (s *Shell) Last(id string) (out, err string) {
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	if j == nil {
		return "", ""
	}
	return j.Last()
}

// nextLook is when the record of a job of another process is read again.
func nextLook(until time.Time) time.Time {
	next := time.Now().Add(250 * time.Millisecond)
	if !until.IsZero() && until.Before(next) {
		return until
	}
	return next
}

// Stop ends a job's whole tree and waits for it. A job that is already over is no error. ErrElsewhere: another server
// process runs it.
func (s *Shell) Stop(ctx context.Context, id string) (Info, error) {
	j, i, err := s.find(ctx, id)
	switch {
	case err != nil:
		return i, err
	case j != nil:
		j.interrupt(Killed)
		err = waitUntil(ctx, j.ended, time.Time{})
		return j.Info(), err
	case i.State == Running:
		return i, ErrElsewhere
	}
	return i, nil
}

// openLog opens what is left of the log of a job of another process.
func (s *Shell) openLog(i Info) (*os.File, kept, error) {
	path := (&Job{id: i.ID, shell: s}).base() + logSuffix
	f, err := os.Open(path)
	if err != nil {
		return nil, kept{}, fmt.Errorf("%w: its output is gone", ErrUnknown)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // only read
		return nil, kept{}, err
	}
	if i.Dropped == 0 || i.State == Lost {
		return f, s.limits.kept(info.Size()), nil
	}
	tail := s.limits.keep + i.Dropped
	size := tail + s.limits.keep // less than was printed, if not all of it was kept
	return f, kept{size: size, head: s.limits.keep, tail: tail, shift: tail - (info.Size() - (size - tail))}, nil
}
