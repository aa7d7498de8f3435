package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

const (
	// chunk is how many bytes of a file are read at once, from its end on.
	chunk = 256 << 10
	// mostRead is how many bytes one question reads.
	mostRead = 64 << 20
)

// A PastCall is what the log says of one call. Its texts come from clients and models.
type PastCall struct {
	Time      time.Time // it ended, or began if it did not
	Principal string
	Session   string // its key
	Client    string // name and version; "": the log does not say
	Dir       string // in which the session worked; "": the log does not say
	ID        string
	Tool      string
	Summary   string // what it was about
	Decision  string // whether it could run
	Rule      string // that decided; "": none did
	By        string // who or what decided
	Code      string // why it failed; "": it did not
	Exit      *int   // of a command that has ended
	Job       string // id of the background command that it was about; "": none
	Took      time.Duration
	Files     int  // that it changed
	Open      bool // the log has no end of it: it runs, or its process was killed
}

// A Query says which calls Recent returns. The zero Query means all.
type Query struct {
	Principal string    // "": of all
	Before    time.Time // only calls that ended earlier; zero: all
	Limit     int       // 0: 100
	// Session says whether calls of a session are wanted, by its key; nil: those of all. What it passes over is not
	// parsed, which is most of what a question takes.
	Session func(key string) bool
	// Failed passes over calls that went well, most of them likewise without parsing. Fits tells the others.
	Failed bool
	// Fits has the last word about a call, with all that the log says of it; nil: all fit.
	Fits func(PastCall) bool
}

// recentLine is what Recent reads of a line.
type recentLine struct {
	T      time.Time
	Ev     string
	P, SK  string
	Client string
	Dir    string
	Call   string
	Tool   string
	Sum    string
	Dec    string
	Rule   string
	By     string
	OK     bool
	Code   string
	Exit   *int
	Job    string
	MS     struct{ All float64 }
	Files  []struct{}
}

// Recent returns the calls in the log in dir that fit q, the newest first. more: there are older ones, or what is older
// was not looked at, because that is too much for one question. A line that cannot be read is left out: Check finds it.
// A directory that does not exist holds none.
func Recent(dir string, q Query) (list []PastCall, more bool, err error) {
	files, err := listFiles(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	slices.SortFunc(files, func(a, b logFile) int {
		return cmp.Or(b.changed.Compare(a.changed), cmp.Compare(a.name, b.name))
	})
	limit, budget := cmp.Or(q.Limit, 100), int64(mostRead)
	for _, f := range files {
		if len(list) > limit && f.changed.Before(list[limit].Time) {
			break // all of it is older
		}
		oldest := time.Time{}
		if len(list) > limit {
			oldest = list[limit].Time
		}
		found, err := recentIn(filepath.Join(dir, f.name), q, limit+1, oldest, &budget)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
			return nil, false, err
		}
		list = append(list, found...)
		slices.SortStableFunc(list, func(a, b PastCall) int { return b.Time.Compare(a.Time) })
		list = list[:min(len(list), limit+1)]
		if budget <= 0 {
			more = true
			break
		}
	}
	more = more || len(list) > limit
	return list[:min(len(list), limit)], more, nil
}

// rawKey is the key of the session in a line, as it stands there; false: it is not known without a parser. No other
// value holds these bytes: within a text quotes are escaped.
func rawKey(line []byte) (key []byte, ok bool) {
	const before = `"sk":"`
	at := bytes.Index(line, []byte(before))
	if at < 0 {
		return nil, false
	}
	key, _, ok = bytes.Cut(line[at+len(before):], []byte{'"'})
	return key, ok && !bytes.ContainsRune(key, '\\')
}

// wentWell says whether a line without a parser tells that it is all of one call, which did not fail; see rawKey.
func wentWell(line []byte) bool {
	has := func(text string) bool { return bytes.Contains(line, []byte(text)) }
	return has(`"ev":"call.done"`) && has(`"ok":true,"code":""`) && (has(`"exit":null,`) || has(`"exit":0,`)) &&
		has(`"client":"`) // else its beginning has a line of its own
}

// recentIn returns the newest calls of a file that fit, at most so many and none before oldest, the newest first. What
// it reads it takes off budget.
func recentIn(path string, q Query, most int, oldest time.Time, budget *int64) (list []PastCall, err error) {
	ended := map[string]int{} // calls whose beginning the reading has not come to: their places in list, or -1
	whole := 0                // calls in list of which all is known, and which fit
	misfit := map[int]bool{}  // places in list of calls that do not fit, as their beginning says
	fits := func(c PastCall) bool { return q.Fits == nil || q.Fits(c) }
	wantedKeys := map[string]bool{}
	err = backwards(path, budget, func(line []byte) (goOn bool) {
		var l recentLine
		if key, ok := rawKey(line); ok && q.Session != nil {
			wanted, known := wantedKeys[string(key)]
			if !known {
				wanted = q.Session(string(key))
				wantedKeys[string(key)] = wanted
			}
			if !wanted {
				return true
			}
		}
		if q.Failed && wentWell(line) || json.Unmarshal(line, &l) != nil || l.T.IsZero() {
			return true
		}
		switch {
		case l.Ev != "call.done" && l.Ev != "call.start":
			return true
		case l.T.Before(oldest), whole >= most && len(ended) == 0:
			return false
		case q.Principal != "" && l.P != q.Principal, q.Session != nil && !q.Session(l.SK):
			return true
		}
		c := PastCall{Time: l.T, Principal: l.P, Session: l.SK, Client: l.Client, Dir: l.Dir, ID: l.Call, Tool: l.Tool,
			Summary: l.Sum, Decision: l.Dec, Rule: l.Rule, By: l.By, Code: l.Code, Exit: l.Exit, Job: l.Job,
			Took: time.Duration(l.MS.All * float64(time.Millisecond)), Files: len(l.Files)}
		at, known := ended[l.Call]
		wanted := whole < most && (q.Before.IsZero() || c.Time.Before(q.Before))
		switch {
		case l.Ev == "call.start" && known: // it says what the end did not
			delete(ended, l.Call)
			if at < 0 {
				return true
			}
			e := &list[at]
			e.Client, e.Dir, e.Summary = c.Client, c.Dir, c.Summary
			e.Decision, e.Rule, e.By = c.Decision, c.Rule, c.By
			if fits(*e) {
				whole++
			} else {
				misfit[at] = true
			}
			return true
		case l.Ev == "call.start":
			c.Open = true
		case l.Dec == "" && l.Sum == "" && l.Client == "": // its beginning has a line of its own
			ended[l.Call] = -1
			if wanted {
				ended[l.Call] = len(list)
				list = append(list, c)
			}
			return true
		}
		if wanted && fits(c) {
			whole++
			list = append(list, c)
		}
		return true
	})
	for _, at := range ended { // the file does not say how they began
		if at >= 0 && !fits(list[at]) {
			misfit[at] = true
		}
	}
	at := -1
	return slices.DeleteFunc(list, func(PastCall) bool { at++; return misfit[at] }), err
}

// backwards calls use for each line of a file, the last one first, until it returns false or budget is used up. The
// line that is being written, and one that is too long to be ours, are left out.
func backwards(path string, budget *int64, use func(line []byte) (goOn bool)) error {
	file, err := openFile(path)
	if err != nil {
		return err
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	var rest []byte // the beginning of what was read: the end of a line that begins before it
	for end > 0 && *budget > 0 {
		n := min(end, chunk)
		block := make([]byte, n, n+int64(len(rest)))
		if _, err := file.ReadAt(block, end-n); err != nil {
			return err
		}
		*budget -= n
		end -= n
		block = append(block, rest...)
		for {
			at := bytes.LastIndexByte(block, '\n')
			if at < 0 {
				break
			}
			if line := block[at+1:]; len(line) > 0 && !use(line) {
				return nil
			}
			block = block[:at]
		}
		if len(block) > 2*maxLine {
			return nil // no line of ours; the rest of the file cannot be trusted
		}
		rest = block
	}
	if end == 0 && len(rest) > 0 {
		use(rest)
	}
	return nil
}

// Stamp is another text when the log in dir has new lines.
func Stamp(dir string) string {
	files, err := listFiles(dir)
	if err != nil {
		return ""
	}
	sum := fnv.New64a()
	for _, f := range files {
		fmt.Fprintf(sum, "%s %d %d\n", f.name, f.size, f.changed.UnixNano())
	}
	return fmt.Sprintf("%x", sum.Sum64())
}
