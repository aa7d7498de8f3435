package audit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"codehand/server/pipeline"
	"codehand/tools/results"
	"codehand/tools/secrets"
	"codehand/tools/tool"
)

// Limits of one line.
const (
	maxLine  = 16 << 10 // bytes, its newline included
	maxFrame = 256      // of them for what only the log knows: number, hash of the line before
	maxHead  = 40       // of these before the fields: len(`{"v":1,"seq":`) and the digits of an int64
	maxText  = 200      // runes of one text
	maxPath  = 4 << 10  // bytes of one path: the longest that a system takes
	maxFiles = 100      // of one call
)

// timeFormat is RFC 3339 with microseconds, in UTC.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// The events that a file begins with.
const (
	eventStart  = "serve.start"
	eventRotate = "rotate"
)

// An logLine is a line under construction: room for its beginning, which only the log knows, then its fields, each with
// the comma before it. Our own encoder, because every call pays for two lines (BenchmarkLine).
type logLine []byte

// A maker is the process that writes lines.
type maker struct {
	replica string
	node    string // of several machines; "": it is alone
}

// newLine begins a line with what all have.
func newLine(t time.Time, ev string, by maker) logLine {
	l := make(logLine, maxHead, 1280) // of most calls, with its frame
	l.key("t")
	l = append(l, '"')
	l = t.UTC().AppendFormat(l, timeFormat)
	l = append(l, '"')
	l.text("ev", ev)
	l.text("rep", by.replica)
	if by.node != "" {
		l.text("node", by.node)
	}
	return l
}

func (l *logLine) key(name string) {
	*l = append(*l, ',', '"')
	*l = append(*l, name...)
	*l = append(*l, '"', ':')
}

// text adds a string of at most 200 runes in which nothing is invisible.
func (l *logLine) text(name, s string) {
	l.key(name)
	if !plainText(s) {
		s = showText(s)
	}
	*l = tool.AppendText(*l, s)
}

// plainText says whether showText would leave s as it is: most texts are short words.
func plainText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= maxText
}

// path adds a path, which is longer than a text and must be whole to be of use.
func (l *logLine) path(name, s string) {
	l.key(name)
	s, _ = results.Show(s)
	*l = tool.AppendText(*l, s[:min(len(s), maxPath)])
}

// showText shows what could deceive a reader as an escape, and cuts the rest. What comes out is valid UTF-8 and has of
// all controls only tab and line feed.
func showText(s string) string {
	s, _ = results.Show(s[:min(len(s), maxPath)])
	if len(s) <= maxText {
		return s
	}
	n := 0
	for i := range s {
		if n++; n == maxText && utf8.RuneCountInString(s[i:]) > 1 {
			return s[:i] + "…"
		}
	}
	return s
}

func (l *logLine) number(name string, n int64) {
	l.key(name)
	*l = strconv.AppendInt(*l, n, 10)
}

func (l *logLine) flag(name string, b bool) {
	l.key(name)
	*l = strconv.AppendBool(*l, b)
}

// millis adds a duration in milliseconds, with one digit behind the point.
func (l *logLine) millis(name string, d time.Duration) {
	l.key(name)
	*l = strconv.AppendFloat(*l, float64(d.Microseconds())/1000, 'f', 1, 64)
}

// digest adds a SHA-256 or its beginning, in hex as we made it; "" stays "".
func (l *logLine) digest(name, hex string) {
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
func (l *logLine) value(name string, v any) {
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
			*l = tool.AppendText(*l, showText(s))
		}
		*l = append(*l, ']')
	default:
		l.text(name, fmt.Sprint(v))
	}
}

// eventLine is the line of an event. Fields that do not fit in are left out, from the last of the alphabet on.
func eventLine(t time.Time, ev string, by maker, fields map[string]any) logLine {
	l := newLine(t, ev, by)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		whole := len(l)
		l.value(name, fields[name])
		if len(l) > maxLine-maxFrame {
			l = l[:whole]
			l.flag("cut", true)
			break
		}
	}
	return l
}

// startLine is the line of a call that is about to run.
func startLine(t time.Time, by maker, r pipeline.Record, digest bool) logLine {
	l := newLine(t, "call.start", by)
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
func (l *logLine) caller(r *pipeline.Record) {
	client := r.Client
	if r.ClientVersion != "" {
		client += "/" + r.ClientVersion
	}
	l.text("client", client)
	l.text("era", r.From.Era)
	l.text("tr", r.From.Transport)
	l.text("ip", r.From.IP)
	if r.Dir != "" {
		l.path("dir", secrets.RedactPath(r.Dir))
	}
}

// reason adds what a call is, and why it may run or may not.
func (l *logLine) reason(r *pipeline.Record, digest bool) {
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
func doneLine(t time.Time, by maker, r pipeline.Record, digest bool) logLine {
	l := newLine(t, "call.done", by)
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

	room := maxLine - maxFrame
	if len(r.Files) > 0 {
		var end logLine
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
func (l *logLine) end(r *pipeline.Record, digest bool) {
	l.key("exit")
	if r.Exit == nil {
		*l = append(*l, "null"...)
	} else {
		*l = strconv.AppendInt(*l, int64(*r.Exit), 10)
	}
	if r.Sandbox == nil {
		l.key("sandbox")
		*l = append(*l, "null"...)
	} else {
		l.text("sandbox", strconv.Itoa(r.Sandbox.Level))
		if len(r.Sandbox.Gaps) > 0 {
			l.text("gaps", strings.Join(r.Sandbox.Gaps, ","))
		}
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
func (l *logLine) files(files []tool.FileChange, size int) (cut bool) {
	l.key("files")
	*l = append(*l, '[')
	for i, f := range files {
		whole := len(*l)
		one := *l
		one.path("path", secrets.RedactPath(f.Path))
		one.text("op", f.Op)
		if f.Did != "" {
			one.text("did", f.Did)
		}
		if f.Files > 0 {
			one.number("files", int64(f.Files))
		}
		one.digest("before", f.SumBefore)
		one.digest("after", f.SumAfter)
		one = append(one, '}')
		if len(one) >= size || i == maxFiles {
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
