package hooks

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"codehand/tools/sandbox"
)

// The forms of an answer that the scripts of script_test.go do not show.
func TestReadAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		event  string
		d      done
		weight weight
		reason string
		input  string
		failed string
	}{
		{"blanks around", PreToolUse, done{out: []byte("\n {\"decision\":\"allow\"} \n")}, allows, "", "", ""},
		{"text before", PreToolUse, done{out: []byte("debug\n{\"decision\":\"block\"}")}, silent, "", "", ""},
		{"text behind", PreToolUse, done{out: []byte("{\"decision\":\"block\"}\ndebug")}, silent, "", "", "no JSON"},
		{"array", PreToolUse, done{out: []byte(`[{"decision":"block"}]`)}, silent, "", "", ""},
		{"empty object", PreToolUse, done{out: []byte(`{}`)}, silent, "", "", ""},
		{"wrong type", PreToolUse, done{out: []byte(`{"decision":true}`)}, silent, "", "", "no JSON"},
		{"heavier of both forms", PreToolUse, done{out: []byte(`{"decision":"approve","reason":"a","hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"d"}}`)}, denies, "d", "", ""},
		{"null input", PreToolUse, done{out: []byte(`{"hookSpecificOutput":{"updatedInput":null}}`)}, silent, "", "", ""},
		{"request form", PermissionRequest, done{out: []byte(`{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"no"}}}`)}, denies, "no", "", ""},
		{"request form with input", PermissionRequest, done{out: []byte(`{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedInput":{"a":1}}}}`)}, allows, "", `{"a":1}`, ""},
		{"request form, unknown", PermissionRequest, done{out: []byte(`{"hookSpecificOutput":{"decision":{"behavior":"maybe"}}}`)}, silent, "", "", "maybe"},
		{"exit 2 and nonsense", PreToolUse, done{exit: sandbox.Exit{Code: 2}, out: []byte(`{"decision":"maybe"`), stderr: "  no\n"}, denies, "no", "", ""},
		{"exit 2 and unknown", PreToolUse, done{exit: sandbox.Exit{Code: 2}, out: []byte(`{"decision":"maybe"}`), stderr: "no"}, denies, "no", "", ""},
		{"exit 2 and nothing", PreToolUse, done{exit: sandbox.Exit{Code: 2}}, denies, "", "", ""},
		{"exit 2 with the reason in JSON", PreToolUse, done{exit: sandbox.Exit{Code: 2}, out: []byte(`{"reason":"r","decision":"block"}`), stderr: "s"}, denies, "r", "", ""},
		{"ended with exit 2", PreToolUse, done{exit: sandbox.Exit{Code: 2}, err: errTimeout}, silent, "", "", "longer"},
		{"nothing, but there may be more", PreToolUse, done{lost: errFlood}, silent, "", "", "printed more"},
		{"half of it, and there may be more", PreToolUse, done{lost: errFlood, out: []byte(`{"decision":`)}, silent, "", "", "printed more"},
		{"whole, and there may be more", PreToolUse, done{lost: errFlood, out: []byte(`{"decision":"block"}`)}, denies, "", "", ""},
		{"exit 2, and there may be more", PreToolUse, done{lost: errFlood, exit: sandbox.Exit{Code: 2}}, denies, "", "", ""},
		{"ended with an answer", PreToolUse, done{err: errTimeout, out: []byte(`{"decision":"approve"}`)}, allows, "", "", ""},
		{"no start", PreToolUse, done{err: errors.New("start it: gone")}, silent, "", "", "gone"},
		{"start of a sub-agent", SubagentStart, done{out: []byte(`{"decision":"block","reason":"no","hookSpecificOutput":{"updatedInput":{"a":1}}}`)}, denies, "no", "", ""},
		{"start of a sub-agent, exit 2", SubagentStart, done{exit: sandbox.Exit{Code: 2}, stderr: "no"}, denies, "no", "", ""},
		{"start of a sub-agent, unknown", SubagentStart, done{out: []byte(`{"decision":"maybe"}`)}, silent, "", "", "maybe"},
		{"end of a sub-agent", SubagentStop, done{out: []byte(`{"decision":"block","reason":"go on"}`)}, silent, "", "", ""},
		{"information", FileChanged, done{out: []byte(`{"decision":"block","continue":false}`)}, silent, "", "", ""},
		{"bytes", PreToolUse, done{exit: sandbox.Exit{Code: 2}, stderr: strings.Repeat("\xff", 20_000)}, denies, strings.Repeat("\xff", 10_000), "", ""},
	}
	for _, tt := range tests {
		a := readAnswer(tt.event, tt.d)
		if a.weight != tt.weight || a.reason != tt.reason || string(a.input) != tt.input || (a.failed != nil) != (tt.failed != "") ||
			a.failed != nil && !strings.Contains(a.failed.Error(), tt.failed) {
			t.Errorf("%s: %+v", tt.name, a)
		}
	}
}

// Whatever a program prints: no panic, no text over its limit, exit code 2 always refuses, and what fails decides
// nothing.
func FuzzReadAnswer(f *testing.F) {
	f.Add(`{"decision":"block","reason":"x"}`, "no", 0)
	f.Add(`{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"a":1}}}`, "", 1)
	f.Add(`{"hookSpecificOutput":{"decision":{"behavior":"allow"}},"continue":false}`, "", 2)
	f.Add(`{"updatedToolOutput":"x","additionalContext":"y","systemMessage":"z"}`, "", 0)
	f.Fuzz(func(t *testing.T, out, stderr string, code int) {
		for _, event := range events {
			a := readAnswer(event, done{exit: sandbox.Exit{Code: code}, out: []byte(out), stderr: stderr})
			texts := []string{a.reason, a.context}
			if a.output != nil {
				texts = append(texts, *a.output)
			}
			for _, s := range texts {
				if utf8.RuneCountInString(s) > MaxText {
					t.Errorf("%s: %d runes", event, utf8.RuneCountInString(s))
				}
			}
			switch {
			case code == blockExit && (a.weight != denies || a.failed != nil):
				t.Errorf("%s: exit code 2 is %+v", event, a)
			case a.failed != nil && (a.weight != silent || a.input != nil || a.output != nil || a.context != ""):
				t.Errorf("%s: it failed and decided: %+v", event, a)
			case comments(event) && (a.input != nil || a.weight != silent && a.weight != denies):
				t.Errorf("%s: %+v", event, a)
			}
		}
	})
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{
		{`{"a":1,"b":[1, 2]}`, ` { "b" : [1,2] , "a" : 1 } `},
		{`{"a":"<&>"}`, "{\"a\":\"\\u003c\\u0026\\u003e\"}"},
		{`{"n":12345678901234567890}`, `{"n": 12345678901234567890}`},
	} {
		if string(canonical([]byte(same[0]))) != string(canonical([]byte(same[1]))) {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{`{"n":12345678901234567890}`, `{"n":12345678901234567891}`}, {`{`, `[`}} {
		if string(canonical([]byte(other[0]))) == string(canonical([]byte(other[1]))) {
			t.Errorf("%s and %s are the same", other[0], other[1])
		}
	}
}
