package server

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// agent.max_output says how much of a report one call shows, also of several parts and of a sub-agent that goes on; what
// is more is kept whole.
func TestAgentMaxOutput(t *testing.T) {
	t.Parallel()
	report := strings.Repeat("each line has thirty-two letters\n", 1200) + "THE END" // 39,607 characters
	for name, c := range map[string]struct {
		setting string
		most    int
		whole   bool
	}{"default": {"", 32_000, false}, "little": {"1000", 1_000, false}, "much": {"160000", 50_000, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{script: map[string][]scriptTurn{"LONG": {{text: report}, {text: "again\n" + report}}, "SHORT": {{text: "short"}}}}
			settings := map[string]string{}
			if c.setting != "" {
				settings["agent.max_output"] = c.setting
			}
			f := start(t, setup{model: m, settings: settings})
			for _, x := range [][2]string{
				{"agent", `{"name":"long","description":"d","prompt":"LONG","subagent_type":"explore"}`},
				{"send_message", `{"to":"long","message":"once more"}`},
			} {
				text, bad := f.say(t, x[0], x[1])
				if n := utf8.RuneCountInString(text); bad || n > c.most || strings.Contains(text, report) != c.whole {
					t.Errorf("%s: %d characters, at most %d; error %t: %.300s", x[0], n, c.most, bad, text)
				}
				if c.whole {
					continue
				}
				path := regexp.MustCompile(`Full output: (.+?) Read it with`).FindStringSubmatch(text)
				if path == nil {
					t.Fatalf("%s: the whole is nowhere: %.300s", x[0], text)
				}
				kept, err := os.ReadFile(path[1])
				if err != nil || !strings.Contains(string(kept), report+"\n[agent ") {
					t.Errorf("%s: %s holds %d bytes: %v", x[0], filepath.Base(path[1]), len(kept), err)
				}
			}
			if text, bad := f.say(t, "agent", `{"description":"d","prompt":"SHORT","subagent_type":"explore"}`); bad || !strings.HasPrefix(text, "short\n[agent ") {
				t.Errorf("a short report: %s", text)
			}
		})
	}
}
