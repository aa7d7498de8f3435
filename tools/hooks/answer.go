package hooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"codehand/tools/permission"
)

// An answer is what one hook said. The zero value says nothing.
type answer struct {
	origin  string
	project bool // of a hook of the project
	weight  weight
	reason  string
	input   json.RawMessage // nil: unchanged
	context string
	output  *string // nil: unchanged
	message string  // for the operator
	failed  error   // it could not be understood, or did not end well
}

// A weight is a decision; the heavier one wins.
type weight int

const (
	silent weight = iota
	allows
	asks
	defers // to the client: a person decides
	denies
)

// verdict is how the pipeline sees a decision.
func (w weight) verdict() permission.Verdict {
	switch w {
	case allows:
		return permission.Allow
	case asks, defers:
		return permission.Ask
	}
	return permission.Deny
}

// spoken is the JSON that a hook may answer with, in the forms of other agents, too. What is not named here is ignored.
type spoken struct {
	Continue      *bool   `json:"continue"` // false: a refusal; the client's own loop is not ours to stop
	StopReason    string  `json:"stopReason"`
	SystemMessage string  `json:"systemMessage"`
	Decision      string  `json:"decision"`
	Reason        string  `json:"reason"`
	Context       string  `json:"additionalContext"`
	Output        *string `json:"updatedToolOutput"`

	Specific struct {
		Decision string          `json:"permissionDecision"`
		Reason   string          `json:"permissionDecisionReason"`
		Input    json.RawMessage `json:"updatedInput"`
		Context  string          `json:"additionalContext"`
		Output   *string         `json:"updatedToolOutput"`
		Request  *struct {
			Behavior string          `json:"behavior"`
			Message  string          `json:"message"`
			Input    json.RawMessage `json:"updatedInput"`
		} `json:"decision"` // of PermissionRequest
	} `json:"hookSpecificOutput"`
}

// blockExit is the exit code of a hook that refuses.
const blockExit = 2

var errCut = errors.New("its answer is too long")

// readAnswer reads what a program said to an event.
func readAnswer(event string, d done) answer {
	said, ok, err := parse(d)
	switch {
	case d.err == nil && d.exit.Code == blockExit:
		if !ok {
			said = spoken{}
		}
		a := said.answer(event) // an error is a decision that does not count beside this one
		a.weight, a.failed = denies, nil
		if a.reason == "" {
			a.reason = Clip(string(bytes.TrimSpace([]byte(d.stderr))))
		}
		return a
	case ok:
		return said.answer(event)
	case d.err != nil:
		return answer{failed: d.err}
	case d.exit.Signal != "":
		return answer{failed: fmt.Errorf("ended by %s", d.exit.Signal)}
	case d.exit.Code != 0:
		return answer{failed: fmt.Errorf("exit code %d", d.exit.Code)}
	}
	return answer{failed: err}
}

// parse reads a program's standard output. false without an error: it is no JSON object, which says nothing. What may
// have been one is an error: it may have said no.
func parse(d done) (s spoken, ok bool, err error) {
	text := bytes.TrimSpace(d.out)
	if !bytes.HasPrefix(text, []byte("{")) {
		return spoken{}, false, d.lost
	}
	if d.cut {
		return spoken{}, false, errCut
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return spoken{}, false, cmp.Or(d.lost, fmt.Errorf("its answer is no JSON that is understood: %w", err))
	}
	return s, true, nil // an object that is whole lacks nothing
}

// answer extracts what counts at this event. An unknown decision makes the whole answer invalid: it may have meant no.
func (s spoken) answer(event string) answer {
	a := answer{message: s.SystemMessage}
	if !decides(event) && !comments(event) {
		return a
	}
	a.context = Clip(joined(s.Context, s.Specific.Context))
	err := a.decide(s.Decision, s.Reason)
	if s.Continue != nil && !*s.Continue {
		a.weigh(denies, joined(s.StopReason, s.Reason))
	}
	if decides(event) {
		err = errors.Join(err, a.decide(s.Specific.Decision, s.Specific.Reason))
		a.input = present(s.Specific.Input)
		if r := s.Specific.Request; r != nil {
			err = errors.Join(err, a.decide(r.Behavior, r.Message))
			if in := present(r.Input); in != nil {
				a.input = in
			}
		}
		if !aboutCall(event) {
			a.input = nil // there is none
		}
	} else {
		a.output = s.Output
		if s.Specific.Output != nil {
			a.output = s.Specific.Output
		}
		if a.output != nil {
			text := Clip(*a.output)
			a.output = &text
		}
		if a.weight != denies { // what is done needs no permission
			a.weight, a.reason = silent, ""
		}
	}
	if err != nil {
		return answer{message: a.message, failed: err}
	}
	return a
}

// decide takes over one decision in any of its spellings; "": none.
func (a *answer) decide(word, reason string) error {
	w, ok := map[string]weight{
		"": silent, "allow": allows, "approve": allows, "ask": asks, "defer": defers, "deny": denies, "block": denies,
	}[word]
	if !ok {
		return fmt.Errorf("it decided %q, which means nothing", Clip(word))
	}
	a.weigh(w, reason)
	return nil
}

// weigh lets the heavier decision win.
func (a *answer) weigh(w weight, reason string) {
	if w > a.weight {
		a.weight, a.reason = w, Clip(reason)
	}
}

// present is nil for JSON that is absent or null.
func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// joined puts texts under each other; empty ones are left out.
func joined(texts ...string) string {
	var all string
	for _, t := range texts {
		if all != "" && t != "" {
			all += "\n"
		}
		all += t
	}
	return all
}

// MaxText is how many runes of each thing that hooks say are used.
const MaxText = 10_000

// Clip cuts a text that is longer than MaxText.
func Clip(text string) string { return clip(text, MaxText) }

func clip(text string, runes int) string {
	if len(text) <= runes || utf8.RuneCountInString(text) <= runes {
		return text
	}
	n := 0
	for i := range text {
		if n == runes {
			return text[:i]
		}
		n++
	}
	return text
}

// shortened is what of a text goes to the log.
func shortened(text string) string {
	const runes = 500
	return clip(text, runes)
}
