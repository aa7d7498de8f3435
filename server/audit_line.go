package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"codehand/server/pipeline"
	"codehand/tools/results"
	"codehand/tools/tool"
)

// Limits of one line.
const (
	maxAuditLine  = 16 << 10 // bytes, its newline included
	maxAuditFrame = 256      // of them for what only the log knows: number, hash of the line before
	maxAuditHead  = 40       // of these before the fields: len(`{"v":1,"seq":`) and the digits of an int64
	maxAuditText  = 200      // runes of one text
	maxAuditPath  = 4 << 10  // bytes of one path: the longest that a system takes
	maxAuditFiles = 100      // of one call
)

// auditTime is RFC 3339 with microseconds, in UTC.
const auditTime = "2006-01-02T15:04:05.000000Z"

// The events that a file begins with.
const (
	auditStart  = "serve.start"
	auditRotate = "rotate"
)

// An auditLine is a line under construction: room for its beginning, which only the log knows, then its fields, each with
// the comma before it. Our own encoder, because every call pays for two lines (BenchmarkAuditLine).
type auditLine []byte

// newAuditLine begins a line with what all have.
func newAuditLine(t time.Time, ev, replica string) auditLine {
	l := make(auditLine, maxAuditHead, 1280) // of most calls, with its frame
	l.key("t")
	l = append(l, '"')
	l = t.UTC().AppendFormat(l, auditTime)
	l = append(l, '"')
	l.text("ev", ev)
	l.text("rep", replica)
	return l
}

func (l *auditLine) key(name string) {
	*l = append(*l, ',', '"')
	*l = append(*l, name...)
	*l = append(*l, '"', ':')
}

// text adds a string of at most 200 runes in which nothing is invisible.
func (l *auditLine) text(name, s string) {
	l.key(name)
	if !plainText(s) {
		s = auditText(s)
	}
	*l = tool.AppendText(*l, s)
}

// plainText says whether auditText would leave s as it is: most texts are short words.
func plainText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= maxAuditText
}

// path adds a path, which is longer than a text and must be whole to be of use.
func (l *auditLine) path(name, s string) {
	l.key(name)
	s, _ = results.Show(s)
	*l = tool.AppendText(*l, s[:min(len(s), maxAuditPath)])
}

// auditText shows what could deceive a reader as an escape, and cuts the rest. What comes out is valid UTF-8 and has of
// all controls only tab and line feed.
func auditText(s string) string {
	s, _ = results.Show(s[:min(len(s), maxAuditPath)])
	if len(s) <= maxAuditText {
		return s
	}
	n := 0
	for i := range s {
		if n++; n == maxAuditText && utf8.RuneCountInString(s[i:]) > 1 {
			return s[:i] + "…"
		}
	}
	return s
}

func (l *auditLine) number(name string, n int64) {
	l.key(name)
	*l = strconv.AppendInt(*l, n, 10)
}

func (l *auditLine) flag(name string, b bool) {
	l.key(name)
	*l = strconv.AppendBool(*l, b)
}

// millis adds a duration in milliseconds, with one digit behind the point.
func (l *auditLine) millis(name string, d time.Duration) {
	l.key(name)
	*l = strconv.AppendFloat(*l, float64(d.Microseconds())/1000, 'f', 1, 64)
}

// digest adds a SHA-256 or its beginning, in hex as we made it; "" stays "".
func (l *auditLine) digest(name, hex string) {
	l.key(name)
	if hex == "" {
		*l = append(*l, `""`...)
		return
	}
	*l = append(*l, `"sha256:`...)
	*l = append(*l, hex...)
	*l = append(*l, '"')
}

// value adds a plain value.
func (l *auditLine) value(name string, v any) {
	switch v := v.(type) {
	case string:
		l.text(name, v)
	case bool:
		l.flag(name, v)
	case int:
		l.number(name, int64(v))
	case int64:
		l.number(name, v)
	case []string:
		l.key(name)
		*l = append(*l, '[')
		for i, s := range v {
			if i > 0 {
				*l = append(*l, ',')
			}
			*l = tool.AppendText(*l, auditText(s))
		}
		*l = append(*l, ']')
	default:
		l.text(name, fmt.Sprint(v))
	}
}

// eventLine is the line of an event. Fields that do not fit in are left out, from the last of the alphabet on.
func eventLine(t time.Time, ev, replica string, fields map[string]any) auditLine {
	l := newAuditLine(t, ev, replica)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		whole := len(l)
		l.value(name, fields[name])
		if len(l) > maxAuditLine-maxAuditFrame {
			l = l[:whole]
			l.flag("cut", true)
			break
		}
	}
	return l
}

// startLine is the line of a call that is about to run.
func startLine(t time.Time, replica string, r pipeline.Record, digest bool) auditLine {
	l := newAuditLine(t, "call.start", replica)
	l.text("p", r.Key.Principal)
	l.text("auth", r.From.Auth)
	l.text("sk", r.Key.Session)
	l.caller(&r)
	l.text("call", r.Call)
	l.number("try", 1)
	l.text("tool", r.Tool)
	l.reason(&r, digest)
	return l
}

// caller adds who sent a call, and how.
func (l *auditLine) caller(r *pipeline.Record) {
	client := r.Client
	if r.ClientVersion != "" {
		client += "/" + r.ClientVersion
	}
	l.text("client", client)
	l.text("era", r.From.Era)
	l.text("tr", r.From.Transport)
	l.text("ip", r.From.IP)
}

// reason adds what a call is, and why it may run or may not.
func (l *auditLine) reason(r *pipeline.Record, digest bool) {
	l.text("via", r.Via)
	l.digest("args", r.Digest)
	sum := r.Summary.Text
	if digest {
		sum = r.Summary.Brief
	}
	l.text("sum", sum)
	l.text("dec", r.Decision)
	l.text("rule", r.Rule)
	if r.Origin != "" {
		l.text("origin", r.Origin)
	}
	l.text("by", r.By)
	l.text("mode", r.Mode)
	l.text("trace", r.From.Trace)
}

// doneLine is the line of a call that is over. One that had no line when it began says here what that would have said.
func doneLine(t time.Time, replica string, r pipeline.Record, digest bool) auditLine {
	l := newAuditLine(t, "call.done", replica)
	l.text("p", r.Key.Principal)
	l.text("sk", r.Key.Session)
	l.text("call", r.Call)
	l.number("try", 1)
	l.text("tool", r.Tool)
	ok := r.Code == "ok"
	l.flag("ok", ok)
	if ok {
		r.Code = ""
	}
	l.text("code", r.Code)
	l.key("ms")
	at := len(l)
	l.millis("gate", r.Stages.Gate)
	l.millis("run", r.Stages.Run)
	l.millis("all", r.Took)
	l[at] = '{' // in place of the first comma
	l = append(l, '}')
	l.number("runes", int64(r.Runes))
	l.path("kept", r.Kept)

	room := maxAuditLine - maxAuditFrame
	if len(r.Files) > 0 {
		var end auditLine
		end.end(&r, digest)
		room -= len(end)
	}
	cut := l.files(r.Files, room)
	l.end(&r, digest)
	if cut || r.FilesCut {
		l.flag("cut", true)
	}
	return l
}

// end adds what stands behind the files of a call.
func (l *auditLine) end(r *pipeline.Record, digest bool) {
	l.key("exit")
	if r.Exit == nil {
		*l = append(*l, "null"...)
	} else {
		*l = strconv.AppendInt(*l, int64(*r.Exit), 10)
	}
	if r.Sandbox == "" {
		l.key("sandbox")
		*l = append(*l, "null"...)
	} else {
		l.text("sandbox", r.Sandbox)
	}
	if r.Job != "" {
		l.text("job", r.Job)
	}
	if r.Ref != "" {
		l.text("ref", r.Ref)
	}
	l.flag("cancelled", r.Cancelled)
	l.flag("replay", false)
	l.flag("recovered", false)
	if !r.Announced {
		l.text("auth", r.From.Auth)
		l.caller(r)
		l.reason(r, digest)
	}
}

// files adds the files that a call changed, as many as fit into a line of size bytes, and says whether some do not.
func (l *auditLine) files(files []tool.FileChange, size int) (cut bool) {
	l.key("files")
	*l = append(*l, '[')
	for i, f := range files {
		whole := len(*l)
		one := *l
		one.path("path", pipeline.RedactPath(f.Path))
		one.text("op", f.Op)
		one.digest("before", f.SumBefore)
		one.digest("after", f.SumAfter)
		one = append(one, '}')
		if len(one) >= size || i == maxAuditFiles {
			*l, cut = one[:whole], true
			break
		}
		one[whole] = '{'
		if i > 0 {
			one = slices.Insert(one, whole, ',')
		}
		*l = one
	}
	*l = append(*l, ']')
	return cut
}
