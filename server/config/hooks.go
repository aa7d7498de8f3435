package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/tools/permission"
)

// hooksTable holds one array of tables for each event, besides settings.
const hooksTable = "hooks"

// hookEvents are what hooks may be told of, in the order of a call and of a session.
var hookEvents = [...]string{
	"PreToolUse", "PermissionRequest", "PermissionDenied", "PostToolUse", "PostToolUseFailure", "FileChanged",
	"SessionStart", "SessionEnd", "SubagentStart", "SubagentStop",
}

const (
	defaultHookMS = 60_000
	maxHookMS     = 600_000
)

// plainMatcher is what a list of exact names is made of; anything else is an expression.
var plainMatcher = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_ ,|-]*$`) })

// hookArray says whether path is that of hooks for one event, misspelt or not. The settings of the table have small
// letters.
func hookArray(path []string) bool {
	return len(path) == 2 && path[0] == hooksTable && path[1] != "" && path[1] != strings.ToLower(path[1])
}

// hook reads one table of hooks.
func (l *loader) hook(e entry, in input) {
	event := e.path[1]
	if !slices.Contains(hookEvents[:], event) {
		l.problems.add(e.origin, fmt.Sprintf("unknown event %q; the events are %s", event,
			strings.Join(hookEvents[:], ", ")))
		return
	}
	if list, ok := e.raw.([]any); ok && len(list) == 0 {
		return
	}
	table, ok := e.raw.(map[string]any)
	if !ok {
		l.problems.add(e.origin, fmt.Sprintf("%s: must be tables, written as [[%s]]", e.key, e.key))
		return
	}
	problems := len(l.problems)
	h := Hook{Event: event, Timeout: defaultHookMS * time.Millisecond, Origin: e.origin}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		at := in
		at.raw, at.lines = table[key], nil
		if origin := e.keys[key]; origin != "" {
			at.origin = origin
		}
		known, err := h.set(key, at)
		switch {
		case !known:
			l.problems.add(at.origin, fmt.Sprintf("unknown key %q", e.key+"."+key))
		case err != nil:
			l.refuse(e.key+"."+key, at.origin, err)
		}
	}
	if len(h.Command) == 0 && len(l.problems) == problems {
		l.problems.add(e.origin, e.key+`: needs command, as ["/usr/local/bin/guard"]`)
	}
	if len(l.problems) == problems {
		l.config.Hooks.Entries = append(l.config.Hooks.Entries, h)
	}
}

// set sets one key of a hook; known is false if there is no such key.
func (h *Hook) set(key string, in input) (known bool, err error) {
	switch key {
	case "matcher":
		if err = (text{&h.Matcher}).set(in); err == nil {
			err = checkMatcher(h.Matcher)
		}
	case "if":
		var rule string
		if err = (text{&rule}).set(in); err != nil {
			break
		}
		h.If = permission.Rule{Text: rule, Origin: in.origin, Dir: in.ruleDir}
		if _, bad := permission.Compile(h.If, in.home); bad != nil {
			err = errors.New(strings.TrimPrefix(bad.Error(), in.origin+": "))
		}
	case "command":
		var words []string
		if words, err = entries(in); err == nil {
			h.Command, err = readCommand(words, in)
		}
	case "timeout_ms":
		err = (millis{&h.Timeout, 1, maxHookMS}).set(in)
	case "async":
		err = (toggle{&h.Async}).set(in)
	default:
		return false, nil
	}
	return true, err
}

// checkMatcher refuses what matches nothing, and expressions that are none.
func checkMatcher(s string) error {
	if s == "" || s == "*" {
		return nil
	}
	if !plainMatcher().MatchString(s) {
		_, err := regexp.Compile(s)
		return err
	}
	if strings.Trim(s, " ,|") == "" {
		return fmt.Errorf("%q names no tool", s)
	}
	return nil
}
