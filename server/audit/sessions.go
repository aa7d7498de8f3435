package audit

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// A Session is what the log holds of the calls of one session.
type Session struct {
	Principal string    `json:"principal"`
	Session   string    `json:"session"` // its key, as in the field sk of the log
	Client    string    `json:"client"`  // name and version of the last one
	First     time.Time `json:"first"`   // when its first call ended, or was refused
	Last      time.Time `json:"last"`
	Calls     int       `json:"calls"`
	Failed    int       `json:"failed"` // of Calls; one that still waits for a person has not failed
	Changes   int       `json:"changes"`
}

// Sessions lists the sessions of a principal whose calls the log in dir holds, or of all principals if it is "", the
// one last used first. A line that cannot be read is left out: Check finds it. A directory that does not exist holds
// none.
func Sessions(dir, principal string) ([]Session, error) {
	files, err := listFiles(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	type key struct{ principal, session string }
	found := map[key]*Session{}
	clients := map[key]string{} // those that a line told which is not counted
	for _, f := range files {
		err := eachCall(filepath.Join(dir, f.name), func(l callEnd) {
			at := key{l.P, l.SK}
			switch {
			case principal != "" && l.P != principal:
				return
			case l.Client != "":
				clients[at] = l.Client
			}
			if l.Ev != "call.done" {
				return
			}
			s := found[at]
			if s == nil {
				s = &Session{Principal: l.P, Session: l.SK, First: l.T}
				found[at] = s
			}
			if s.Last = later(s.Last, l.T); l.T.Before(s.First) {
				s.First = l.T
			}
			if l.Code == "PENDING" { // the same call ends in another line
				return
			}
			s.Calls++
			for _, f := range l.Files {
				s.Changes += max(f.Files, 1)
			}
			if !l.OK {
				s.Failed++
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
			return nil, err
		}
	}
	list := make([]Session, 0, len(found))
	for at, s := range found {
		s.Client = clients[at]
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Session) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Session, b.Session))
	})
	return list, nil
}

// A callEnd is what a line says of a call.
type callEnd struct {
	T      time.Time
	Ev     string
	P, SK  string
	Client string // of call.start, or of a call.done that has none before it
	OK     bool
	Code   string
	Files  []struct{ Files int } // of a new directory that stands for its files; else 0
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// eachCall calls use for each line of a file that is about a call.
func eachCall(path string, use func(callEnd)) error {
	file, err := openFile(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 0, maxLine), 2*maxLine)
	for lines.Scan() {
		var l callEnd
		if err := json.Unmarshal(lines.Bytes(), &l); err == nil && l.P != "" {
			use(l)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil // no line of ours; the rest of the file cannot be trusted
	}
	return lines.Err()
}
