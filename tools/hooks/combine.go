package hooks

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"codehand/tools/permission"
)

// combine puts answers together, those in the order of the configuration. The strictest decision gives the reason.
func (r *Runner) combine(e Event, answers []answer) Outcome {
	var o Outcome
	heaviest := silent
	var origins []string
	opine := func(w weight, reason string, by ...string) {
		o.Opinions = append(o.Opinions, w.verdict())
		switch {
		case w > heaviest:
			heaviest, o.Reason, origins = w, reason, by
		case w == heaviest:
			o.Reason, origins = joined(o.Reason, reason), append(origins, by...)
		}
	}
	for _, a := range answers {
		if a.failed != nil && r.o.FailClosed && decides(e.Name) {
			opine(denies, "The hook at "+a.origin+" failed, and hooks.fail_closed is set. Tell the operator.", a.origin)
		}
		if a.weight > silent && (a.weight != allows || !a.project) {
			opine(a.weight, a.reason, a.origin)
		}
		o.Context = joined(o.Context, a.context)
		switch {
		case a.output == nil:
		case o.Output == nil:
			o.Output = a.output
		case *o.Output != *a.output:
			r.log.Warn("two hooks put different texts in the place of a result: the first one counts", "event", e.Name,
				"hook", a.origin)
		}
	}
	input, project, agree := changedInput(e.Input, answers)
	switch o.Input = input; {
	case !agree:
		opine(denies, "Two hooks changed the input in different ways. Tell the operator.")
	case project: // the person who allowed the call allowed another one
		o.Opinions = slices.DeleteFunc(o.Opinions, func(v permission.Verdict) bool { return v == permission.Allow })
		if heaviest == allows {
			o.Reason, origins = "", nil
		}
	}
	o.Reason, o.Origin, o.Context = Clip(o.Reason), Clip(strings.Join(slices.Compact(origins), ", ")), Clip(o.Context)
	if o.Opinions != nil && heaviest == denies {
		o.Opinions = []permission.Verdict{permission.Deny} // no other one counts any more
	}
	return o
}

// changedInput returns the input that hooks put in the place of the old one, and whether only hooks of the project did;
// nil: none did. agree is false if they do not. One that is the old one again is no change.
func changedInput(old json.RawMessage, answers []answer) (input json.RawMessage, project, agree bool) {
	var chosen []byte
	for _, a := range answers {
		if a.input == nil {
			continue
		}
		same := canonical(a.input)
		switch {
		case bytes.Equal(same, canonical(old)):
		case chosen == nil:
			input, chosen, project = a.input, same, a.project
		case !bytes.Equal(same, chosen):
			return nil, false, false
		default:
			project = project && a.project
		}
	}
	return input, project, true
}

// canonical is JSON without insignificant blanks, and with sorted keys: equal values have equal bytes. Numbers stay as
// they are written.
func canonical(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return text
}
