package permission

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"codehand/tools/bash"
)

// The decisions that the corpus must hold at least.
const leastDecisions = 300

// A world is what one section of the corpus says about the machine, the rules and the session.
type world struct {
	options  Options
	roots    []string
	cwd      string
	links    map[string]string   // path of a link: what it leads to
	hard     map[string][]string // path of a file: its other names
	folds    bool
	mode     Mode
	hooks    []Verdict
	judged   []Verdict
	confined bool
	grants   []Grant
	policy   *Policy // nil: not made yet
}

// noon is when all calls of the corpus are made.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func newWorld() *world {
	return &world{
		options: Options{Home: "/h/u", Own: []string{"/h/u/.local/state/codehand", "/h/u/.codehand-config/config.toml"}},
		roots:   []string{"/w", "/v"}, cwd: "/w", links: map[string]string{}, hard: map[string][]string{},
	}
}

// TestCorpus makes every decision of the corpus. A line that begins with a verdict is a call; any other changes the
// world for the calls below it; a section begins a new one.
//
//	allow, ask (a default ask), ASK (a hard one), deny, off
//
// A call is followed by the rule that must be named, after `<=`; ⏎ in a command is the end of a line.
func TestCorpus(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../testdata/corpus/permissions.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var w *world
	section, calls := "", 0
	for i, line := range strings.Split(string(data), "\n") {
		at := fmt.Sprintf("permissions.txtar:%d: %s", i+1, section)
		switch {
		case strings.HasPrefix(line, "-- "):
			section, w = strings.Trim(line, "- "), newWorld()
		case w == nil, strings.TrimSpace(line) == "", strings.HasPrefix(line, "#"):
		default:
			want, rest, _ := strings.Cut(line, " ")
			if !strings.Contains(" allow ask ASK deny off ", " "+want+" ") {
				if err := w.set(line); err != nil {
					t.Fatalf("%s: %v", at, err)
				}
				continue
			}
			calls++
			if err := w.check(want, rest); err != nil {
				t.Errorf("%s: %s\n%v", at, line, err)
			}
		}
	}
	if calls < leastDecisions {
		t.Errorf("the corpus has %d decisions, want %d at least", calls, leastDecisions)
	}
	t.Logf("%d decisions", calls)
}

// set changes the world by one line.
func (w *world) set(line string) error {
	key, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	rule := Rule{Text: value, Origin: "config.toml:7"}
	key, project := strings.CutPrefix(key, "project ")
	if project {
		rule.Dir = "/conf"
	}
	var err error
	switch key {
	case "deny":
		w.options.Deny = append(w.options.Deny, rule)
	case "ask":
		w.options.Ask = append(w.options.Ask, rule)
	case "allow":
		w.options.Allow = append(w.options.Allow, rule)
	case "protect":
		w.options.Protect = append(w.options.Protect, value)
	case "unprotect":
		w.options.Unprotect = append(w.options.Unprotect, value)
	case "no rules":
		w.options.Deny, w.options.Ask, w.options.Allow = nil, nil, nil
	case "root":
		w.roots = append(w.roots, value)
	case "cd":
		w.cwd = value
		return nil // the policy stays: it knows where the session began
	case "link":
		from, to, _ := strings.Cut(value, " -> ")
		w.links[from] = to
	case "hard link":
		a, b, _ := strings.Cut(value, " = ")
		w.hard[a], w.hard[b] = append(w.hard[a], b), append(w.hard[b], a)
	case "folds":
		w.folds = true
	case "mode":
		w.mode, err = ParseMode(value)
	case "hooks":
		w.hooks = verdicts(value)
	case "classifier":
		w.judged = verdicts(value)
	case "sandbox":
		w.confined = value == "on"
	case "grant":
		age, text, _ := strings.Cut(value, " ")
		var d time.Duration
		d, err = time.ParseDuration(age)
		w.grants = append(w.grants, Grant{Rule: text, At: noon.Add(-d)})
	case "no grants":
		w.grants = nil
	default:
		err = fmt.Errorf("%q means nothing", line)
	}
	w.policy = nil
	return err
}

func verdicts(text string) (vs []Verdict) {
	for word := range strings.FieldsSeq(text) {
		vs = append(vs, map[string]Verdict{"allow": Allow, "ask": Ask, "deny": Deny}[word])
	}
	return vs
}

// check makes one decision.
func (w *world) check(want, rest string) error {
	call, rule, named := strings.Cut(rest, " <= ")
	if w.policy == nil {
		p, err := New(w.options)
		if err != nil {
			return err
		}
		w.policy = p.At(w.roots, w.cwd)
	}
	r, err := w.request(strings.TrimSpace(call))
	if err != nil {
		return err
	}
	d := w.policy.At(w.roots, w.cwd).Decide(r)
	got := map[string]string{"a": "allow", "q": "ask", "Q": "ASK", "d": "deny"}[letter(d)]
	if d.Off && d.Verdict == Deny {
		got = "off"
	}
	if got != want || named && d.Rule != strings.TrimSpace(rule) {
		return fmt.Errorf("got %s: %+v\n%s", got, d, describe(r))
	}
	return nil
}

// request is what the pipeline would make of a call.
func (w *world) request(call string) (Request, error) {
	verb, what, _ := strings.Cut(strings.ReplaceAll(call, "⏎", "\n"), " ")
	r := Request{Own: Allow, Mode: w.mode, Cwd: w.cwd, Opinions: w.hooks, Judged: w.judged, Confined: w.confined, Grants: w.grants, Now: noon}
	file := []Target{{Kind: Path, Value: path.Join(w.cwd, what)}}
	if path.IsAbs(what) {
		file[0].Value = path.Clean(what)
	}
	switch verb {
	case "read":
		r.Tool, r.Aliases, r.ReadOnly, r.Targets = "read_file", []string{"Read"}, true, file
	case "grep":
		r.Tool, r.Aliases, r.ReadOnly, r.Targets = "grep_search", []string{"Grep"}, true, file
	case "edit":
		r.Tool, r.Aliases, r.Targets = "edit_file", []string{"Edit"}, file
	case "write":
		r.Tool, r.Aliases, r.Targets = "write_file", []string{"Write"}, file
	case "plan":
		r.Tool, r.Aliases, r.Targets, r.PlanFile = "write_file", []string{"Write"}, file, true
	case "sh":
		a := bash.Analyze(what, func(p string) bool { return w.inside(path.Clean(p)) })
		r.Tool, r.Aliases, r.ReadOnly = "run_shell", []string{"Bash"}, a.Class == bash.ReadOnly
		r.Targets = append(w.files(a), Target{Kind: Command, Value: what, Analysis: &a})
	case "fetch":
		r.Tool, r.Aliases, r.ReadOnly, r.Targets = "web_fetch", []string{"WebFetch"}, true, []Target{{Kind: Domain, Value: what}}
	case "agent":
		r.Tool, r.Aliases, r.Targets = "agent", []string{"Agent"}, []Target{{Kind: Name, Value: what}}
	case "skill":
		r.Tool, r.Aliases, r.Private, r.Targets = "skill", []string{"Skill"}, true, []Target{{Kind: Name, Value: what}}
	case "todo":
		r.Tool, r.Aliases, r.Private = "todo_write", []string{"TodoWrite"}, true
	case "tool":
		name, input, _ := strings.Cut(what, " ")
		r.Tool, r.Input = name, json.RawMessage(input)
	default:
		return r, fmt.Errorf("%q is no call", call)
	}
	r.Family = familyOf(r.Tool)
	for i := range r.Targets {
		w.resolve(&r.Targets[i])
	}
	return r, nil
}

// files are the files of a command as the pipeline finds them.
func (w *world) files(a bash.Analysis) (targets []Target) {
	for _, f := range a.Files {
		t := Target{Kind: Path, Value: f.Path, Use: fileUse(f)}
		switch {
		case strings.HasPrefix(f.Path, "~/"):
			t.Value = path.Join(w.options.Home, f.Path[2:])
		case !path.IsAbs(f.Path):
			t.Value = path.Join(w.cwd, f.Path)
		}
		targets = append(targets, t)
	}
	return targets
}

// resolve follows the links of the world.
func (w *world) resolve(t *Target) {
	if t.Kind != Path {
		return
	}
	t.Real = t.Value
	for range 10 {
		for from, to := range w.links {
			if rest, ok := below(from, t.Real); ok {
				t.Real = path.Join(to, rest)
			} else if t.Real == from {
				t.Real = to
			}
		}
	}
	t.Also, t.Folds = w.hard[t.Real], w.folds
	t.Inside = w.inside(t.Value) && w.inside(t.Real)
}

func (w *world) inside(name string) bool {
	for _, root := range w.roots {
		if _, ok := below(root, name); ok || name == root {
			return true
		}
	}
	return false
}

// describe says what a command was read as.
func describe(r Request) string {
	var b strings.Builder
	for _, t := range r.Targets {
		switch {
		case t.Analysis != nil:
			fmt.Fprintf(&b, "%s: %s, unclear %v, person %q, removes %q\n", t.Analysis.Class, t.Analysis.Why, t.Analysis.Unclear, t.Analysis.Person, t.Analysis.Removes)
			for _, p := range t.Analysis.Parts {
				fmt.Fprintf(&b, "  %s %q forms %q exact %v inner %v edits %q\n", p.Class, p.Text, p.Forms, p.Exact, p.Inner, p.Edits)
			}
		default:
			fmt.Fprintf(&b, "  %+v\n", t)
		}
	}
	return b.String()
}
