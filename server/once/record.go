package once

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/filestate/seen"
	"codehand/server/request"
	"codehand/tools/tool"
)

// A Fate says what becomes of a call that was cut off, when it arrives again.
type Fate string

// The kinds.
const (
	Unknown Fate = ""      // nobody can say what it did
	Files   Fate = "files" // it changes files and nothing else: the journal says which
	Again   Fate = "again" // it is made again: twice is the same as once
)

// A memo is what the Store holds of a call. Its family deletes it by time, and nothing else does.
type memo struct {
	V    int     `json:"v"` // recordVersion
	Sum  string  `json:"sum"`
	Fate Fate    `json:"fate,omitempty"`
	Call string  `json:"call"`           // id of the attempt: its changes in the journal have it
	Tool string  `json:"tool"`           // for who reads it
	Done bool    `json:"done,omitempty"` // false: it is about to run, runs, or was cut off
	Void bool    `json:"void,omitempty"` // its client took it back: the id is free again
	Kept *keptAt `json:"kept,omitempty"` // of the answer of a call that is done; nil: it was too large, or too many
}

const recordVersion = 1

// A past is what the Store says of a call that arrives.
type past struct {
	*memo        // nil: no attempt has begun
	rev   uint64 // with which the next attempt takes its place
}

// look reads the record of a call. The error is a refusal.
func (r *Records) look(ctx context.Context, k Key) (past, error) {
	value, rev, err := r.store.Get(ctx, k.store)
	if err != nil {
		return past{}, down(ctx, err)
	}
	if value == nil {
		return past{}, nil
	}
	p := past{new(memo), rev}
	switch err := json.Unmarshal(value, p.memo); {
	case err == nil && p.V > recordVersion:
		return p, tool.Refuse(tool.StateUnavailable, "What became of an earlier attempt of this call was written by a "+
			"newer codehand. Nothing was done now. The operator must upgrade this server.")
	case err != nil:
		return p, &tool.Refusal{Code: tool.StateUnavailable, Cause: err,
			Text: "What became of an earlier attempt of this call cannot be read. Nothing was done now. Make the " +
				"call again."}
	case p.Void:
		return past{rev: rev}, nil
	case p.Sum != k.sum:
		return p, otherCall(k)
	}
	return p, nil
}

// otherCall is the refusal of a call with the id of another one.
func otherCall(k Key) error {
	return tool.Refuse(tool.InputInvalid, "Nothing was done: the client gave this call an id (%s) that it had given "+
		"to a call of another tool, or with other arguments. Make the call again.", k.field)
}

// down is the refusal of a call because the Store did not answer.
func down(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	return &tool.Refusal{Code: tool.StateUnavailable, Cause: err, Text: "The state store does not answer, so nobody " +
		"can tell whether this call was made before. Nothing was done now. Try again."}
}

func cancelled(ctx context.Context) error {
	return &tool.Refusal{Code: tool.Interrupted, Text: "Tool execution cancelled by user.", Cause: context.Cause(ctx)}
}

// settle says what became of an attempt that began. made is false if the call is to be made now.
func (r *Records) settle(ctx context.Context, p past, c Caller) (o outcome, made bool) {
	switch {
	case p.Done:
		if body := r.kept.read(p.Kept); body != nil {
			return outcome{answer: request.Answer{Result: replayed(body), Failed: failure(body)}}, true
		}
		if p.Fate == Files {
			return r.fromJournal(ctx, p, c)
		}
		return outcome{result: tool.Result{Meta: repeated, Text: doneText}}, true
	case p.Fate == Again:
		return o, false
	case p.Fate == Files:
		return r.fromJournal(ctx, p, c)
	}
	return outcome{err: tool.Refuse(tool.OutcomeUnknown, unknownText)}, true
}

const (
	doneText = "This call was already made by an earlier attempt, and is done. Its result is not kept any more: look " +
		"at what it did before you go on."
	unknownText = "An earlier attempt of this call began and was cut off: the server stopped, or the connection was " +
		"lost. It may have finished, in part or not at all, and was not made again. Check what it did before you " +
		"make it anew."
	journalText = "The journal of changes cannot be read, so nobody can tell whether an earlier attempt of this call " +
		"was carried out. Nothing was done now. Try again."
	unsureText = "An earlier attempt of this call was cut off while it changed %s, and nobody can say how that " +
		"ended. Read it before you go on."
)

// repeated tells programs that the result is that of an earlier attempt.
var repeated = tool.Meta{Data: json.RawMessage(`{"replayed":true}`)}

// fromJournal says what an attempt did to files. If it did nothing, the call is to be made, but for one that is done.
func (r *Records) fromJournal(ctx context.Context, p past, c Caller) (o outcome, made bool) {
	entries, err := c.History(ctx, journal.Query{Fits: func(e journal.Entry) bool { return e.By.Call == p.Call }})
	if err != nil {
		if ctx.Err() != nil {
			return outcome{err: cancelled(ctx)}, true
		}
		return outcome{err: &tool.Refusal{Code: tool.StateUnavailable, Cause: err, Text: journalText}}, true
	}
	result := tool.Result{Meta: repeated}
	lines := []string{"Already carried out by an earlier attempt of this call, whose answer did not arrive."}
	for _, e := range entries {
		for _, f := range e.Files {
			if e.Open || e.Unsure {
				return outcome{err: tool.Refuse(tool.OutcomeUnknown, unsureText, f.Path)}, true
			}
			change := tool.FileChange{Path: f.Path, Op: f.Op, Before: version(f.Before), After: version(f.After),
				SumBefore: f.Before, SumAfter: f.After}
			if f.Op == "update" {
				change.Op = "change"
			}
			result.Meta.Files = append(result.Meta.Files, change)
			line := fmt.Sprintf("%s %s +%d -%d", change.Op, f.Path, f.Added, f.Removed)
			if e.Back(f.Path) {
				line += " (undone since)"
			}
			lines = append(lines, line)
		}
	}
	switch {
	case len(entries) > 0:
		lines = append(lines, "It was not made again. Read what you want to change further.")
	case p.Done:
		lines = append(lines, "It changed nothing.")
	default:
		return o, false
	}
	result.Text = strings.Join(lines, "\n")
	return outcome{result: result}, true
}

// version is the short form of a hash, as results have it; "": there was no file.
func version(sum string) string {
	raw, err := hex.DecodeString(sum)
	if err != nil || len(raw) != len(disk.Digest{}) {
		return ""
	}
	return string(seen.VersionOf(disk.Digest(raw), true))
}

// An Attempt is one that is being made.
type Attempt struct {
	r     *Records
	key   Key
	run   *making
	past  past
	begun *memo // nil: it has not
}

// Begin writes that the attempt is about to run, and claims the call for it. call is the id of the attempt. The error
// is a refusal: nothing may be done.
func (a *Attempt) Begin(ctx context.Context, call, name string, fate Fate) error {
	rec := &memo{V: recordVersion, Sum: a.key.sum, Fate: fate, Call: call, Tool: name}
	switch ok, err := a.put(ctx, rec, a.past.rev); {
	case err != nil:
		return down(ctx, err)
	case !ok:
		return tool.Refuse(tool.Busy, "Another attempt of this call began at this moment. Nothing was done by this "+
			"one. Try again.")
	}
	a.begun = rec
	return nil
}

func (a *Attempt) put(ctx context.Context, rec *memo, rev uint64) (bool, error) {
	value, err := json.Marshal(rec)
	if err != nil {
		return false, err
	}
	return a.r.store.Swap(ctx, a.key.store, value, rev)
}

// done writes that an attempt ran to its end, void that its client took it back. What is to be answered leaves whatever
// comes of it: then a repeat finds a call that was cut off.
func (a *Attempt) done(ctx context.Context, answer request.Answer) {
	rec := *a.begun
	rec.Done = true
	var err error
	if rec.Kept, err = a.r.kept.write(a.key.store, answer.Result); err != nil {
		a.r.log.WarnContext(ctx, "the answer of a call is not kept for a repeat", "call", rec.Call, "error", err)
	}
	a.end(ctx, &rec)
}

func (a *Attempt) void(ctx context.Context) {
	rec := *a.begun
	rec.Void = true
	a.end(ctx, &rec)
}

// end writes the last record of an attempt, in the place of its first.
func (a *Attempt) end(ctx context.Context, rec *memo) {
	err := func() error {
		value, rev, err := a.r.store.Get(ctx, a.key.store)
		if err != nil {
			return err
		}
		var now memo
		if err := json.Unmarshal(value, &now); err != nil || now.Call != rec.Call {
			return errors.Join(errTaken, err)
		}
		ok, err := a.put(ctx, rec, rev)
		if err == nil && !ok {
			err = errTaken
		}
		return err
	}()
	if err != nil {
		a.r.log.WarnContext(ctx, "it is not noted how a call ended", "call", rec.Call, "tool", rec.Tool, "error", err)
	}
}

// errTaken says that the record is of another attempt, or gone.
var errTaken = errors.New("the record is not that of this attempt any more")
