package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"codehand/filestate/journal"
	"codehand/tools/history"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed file_history.md
var fileHistoryText string

type fileHistoryInput struct {
	FilePath string `json:"file_path,omitempty" jsonschema:"file or directory"`
	Limit    int    `json:"limit,omitempty" jsonschema:"changes to list" rule:"min=1 max=200 default=20"`
	ChangeID string `json:"change_id,omitempty" jsonschema:"show its diff"`

	Format string `json:"format,omitempty" rule:"enum=text|json default=text"` // for codehand history --json
	Before string `json:"before,omitempty"`                                    // id of a change: older ones than that
	Among  int    `json:"among,omitempty" rule:"min=1"`                        // how many of them are looked at
}

var fileHistory = tool.Define(tool.Def[fileHistoryInput]{
	Spec: tool.Spec{
		Name: "file_history", Title: "File history", Description: fileHistoryText,
		Hint: "list recent changes made to files", Deferred: true, MaxRunes: history.MaxRunes, Scope: tool.ScopeRead,
		Family:    permission.FamilyRead,
		Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
		ForAgents: tool.AllAgents,
		Example:   `{"file_path":"$WORK/h"}`,
		Finds:     []string{"file history", "what files were changed"},
	},
	Hidden: []string{"format", "before", "among"},
	Paths:  func(in *fileHistoryInput) []*string { return []*string{&in.FilePath} },
	Targets: func(s *session.State, in fileHistoryInput) []permission.Target {
		if in.FilePath != "" {
			return nil
		}
		return []permission.Target{{Kind: permission.Path, Value: s.Space.Cwd()}}
	},
	Activity: func(in fileHistoryInput) string {
		if in.FilePath == "" {
			return "Listing changes"
		}
		return "Listing changes of " + filepath.Base(in.FilePath)
	},
	Run: runFileHistory,
})

func runFileHistory(ctx context.Context, env tool.Env, in fileHistoryInput) (tool.Result, error) {
	view, err := history.NewView(env.State, in.FilePath)
	if err != nil {
		return tool.Result{}, err
	}
	if in.ChangeID != "" {
		return fileHistoryOne(ctx, env, in, view)
	}
	entries, more, err := fileHistoryList(ctx, env, in, view)
	unread, partly := errors.AsType[*journal.UnreadError](err)
	// programs have no use for a part
	if partly = partly && len(entries) > 0 && in.Format != "json"; err != nil && !partly {
		return tool.Result{}, history.Fault("The changes of "+view.Place, err)
	}
	if in.Format == "json" {
		return history.JSON(env, view, entries, more)
	}
	var lines []string
	for _, e := range entries {
		lines = append(lines, history.Line(env, e, view.Files(e), time.Now()))
	}
	if len(lines) == 0 {
		lines = append(lines, "No changes by these tools are recorded for "+view.Place+".")
	} else if more {
		lines = append(lines, fmt.Sprintf("(Showing the newest %d. For older ones %s.)", len(entries),
			history.OlderWords(in.Limit, in.FilePath)))
	}
	if partly {
		lines = append(lines, "(There may be other changes: a part of the journal cannot be read: "+
			history.UnreadCause(unread)+".)")
	}
	return tool.Result{Text: strings.Join(lines, "\n")}, nil
}

// fileHistoryList finds changes, and says whether there are or may be more. *journal.UnreadError comes with those
// found.
func fileHistoryList(ctx context.Context, env tool.Env, in fileHistoryInput,
	view *history.View) (entries []journal.Entry, more bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	enough := errors.New("as many changes as wanted were looked at")
	looked := 0
	q := journal.Query{Kept: true, Before: in.Before, Limit: in.Limit + 1, Fits: func(e journal.Entry) bool {
		if looked++; looked == in.Among {
			stop(enough)
		}
		return view.Shows(e)
	}}
	if q.Below = view.Paths; q.Below == nil {
		q.Below = env.State.Space.Roots()
	}
	if in.Among > 0 { // all are counted that come by
		q.Below = nil
	}
	entries, err = env.Files.History(ctx, q)
	switch {
	case errors.Is(err, enough):
		more, err = true, nil
	case errors.Is(err, journal.ErrNoChange):
		err = history.Unknown(history.ForModels, in.Before) // it was tidied away: what is older than it is not known
	}
	more = more || len(entries) > in.Limit
	return entries[:min(len(entries), in.Limit)], more, err
}

// fileHistoryOne shows the diff of one change, or a content that was kept because there is no other copy.
func fileHistoryOne(ctx context.Context, env tool.Env, in fileHistoryInput, view *history.View) (tool.Result, error) {
	e, err := history.Named(ctx, env.State, history.ForModels, in.ChangeID, true)
	if err != nil {
		return tool.Result{}, err
	}
	files := view.Files(e)
	if len(files) == 0 {
		return tool.Result{}, history.Unknown(history.ForModels, in.ChangeID)
	}
	if in.Format == "json" {
		return history.JSON(env, view, []journal.Entry{e}, false)
	}
	lines, res := []string{history.Line(env, e, files, time.Now())}, tool.Result{}
	for _, f := range files {
		text, before, _, err := history.FileDiff(ctx, env, e, f, len(files))
		switch {
		case errors.Is(err, journal.ErrNoCopy):
			text = "(no copy of the content is kept)"
		case errors.Is(err, journal.ErrNoChange):
			return tool.Result{}, history.Unknown(history.ForModels, e.ID) // it was tidied away since it was found
		case err != nil:
			return tool.Result{}, history.Fault("Change "+e.ID, err)
		case e.Kept != "":
			text = history.KeptContent(e.ID, before)
		}
		if len(files) > 1 {
			lines = append(lines, wording.ShownName(env, f.Path)+":")
		}
		lines, res.Shows = append(lines, text), append(res.Shows, f.Path)
	}
	res.Text = strings.Join(lines, "\n")
	return res, nil
}
