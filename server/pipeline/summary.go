package pipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/secrets"
	"codehand/tools/tool"
)

// maxSummary is how many runes a summary has.
const maxSummary = 200

// A Summary says in one line what a call is about: `file_path=/w/a.go`, `pattern=TODO path=/w`, `command=go test`.
type Summary struct {
	Text  string // as it is: secrets masked, control characters shown, at most 200 runes
	Brief string // the same with every command as its hash and first word
}

// summarize makes the Summary of a bound call: its pattern and its targets, and no other argument.
func summarize(bound *tool.Call) Summary {
	var text, brief []string
	add := func(name, full, short string) {
		full, short = name+"="+full, name+"="+short
		if !slices.Contains(text, full) && len(text) < maxSummary {
			text, brief = append(text, full), append(brief, short)
		}
	}
	if p, ok := argument(bound.Input, "pattern"); ok {
		p = secrets.Redact(p)
		add("pattern", p, p)
	}
	for _, t := range bound.Targets {
		switch t.Kind {
		case permission.Path:
			p := secrets.RedactPath(t.Value)
			add(parameter(bound.Input, t.Value, "path"), p, p)
		case permission.Command:
			full := secrets.Redact(t.Value)
			sum := sha256.Sum256([]byte(t.Value))
			add("command", full, "sha256:"+hex.EncodeToString(sum[:])+" "+firstWord(full))
		case permission.Domain:
			add("host", secrets.RedactPath(t.Value), secrets.RedactPath(t.Value))
		default:
			add("name", secrets.RedactPath(t.Value), secrets.RedactPath(t.Value))
		}
	}
	return Summary{short(strings.Join(text, " ")), short(strings.Join(brief, " "))}
}

// short makes text safe to show and at most 200 runes long.
func short(text string) string {
	text, _ = results.Show(text)
	n := 0
	for i := range text {
		if n == maxSummary-1 && len(text)-i > 1 {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w.+/-]{1,64}$`) })

// firstWord is the program of a redacted command, if that is plain to see.
func firstWord(command string) string {
	for _, w := range strings.Fields(command) {
		if strings.Contains(w, "=") {
			continue // the environment
		}
		if !plainWord().MatchString(w) {
			break
		}
		return w
	}
	return ""
}

// argument returns the string that stands under name in a canonical input. It is looked for as bytes, because an input
// can have megabytes of content; within a string the quotes would be escaped.
func argument(input []byte, name string) (string, bool) {
	before := []byte(`"` + name + `":"`)
	at := bytes.Index(input, before)
	if at < 0 {
		return "", false
	}
	var s string
	err := json.NewDecoder(bytes.NewReader(input[at+len(before)-1:])).Decode(&s)
	return s, err == nil
}

// parameter returns the name under which value stands in a canonical input, or else the usual one.
func parameter(input []byte, value, usual string) string {
	quoted, err := json.Marshal(value)
	if err != nil {
		return usual
	}
	at := bytes.Index(input, append([]byte(`":`), quoted...))
	if at < 0 {
		return usual
	}
	name := input[bytes.LastIndexByte(input[:at], '"')+1 : at]
	if len(name) == 0 || len(name) > 40 {
		return usual
	}
	return string(name)
}
