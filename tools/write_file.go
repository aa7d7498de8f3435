package tools

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"

	"codehand/filestate"
	"codehand/tools/editing"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

//go:embed write_file.md
var writeFileText string

type writeFileInput struct {
	FilePath string `json:"file_path" jsonschema:"absolute or relative"`
	Content  string `json:"content" jsonschema:"whole content" rule:"maxlen=33554432"`
	Version  string `json:"version,omitempty" jsonschema:"shown by read_file"`
}

var writeFile = tool.Define(tool.Def[writeFileInput]{
	Spec: tool.Spec{
		Name: "write_file", Aliases: []string{"Write"}, Title: "Write file", Description: writeFileText,
		Hint: "create or overwrite a whole file", Scope: tool.ScopeWrite, Family: permission.FamilyEdit,
		Traits:    tool.Traits{Idempotent: true, Local: true}, // the same content twice is the same as once
		Card:      tool.Drawn,
		ForAgents: tool.ChangingAgents,
		Elsewhere: []string{"write", "create", "edit", "str_replace_editor", "str_replace_based_edit_tool"},
		Advice:    tool.Advice{Verb: "write"},
		Example:   `{"file_path":"$WORK/new","content":"x"}`,
	},
	Accept: map[string]string{"path": "file_path", "contents": "content", "text": "content", "file_text": "content"},
	Paths:  func(in *writeFileInput) []*string { return []*string{&in.FilePath} },
	Details: func(ctx context.Context, s *session.State, in writeFileInput, room int) string {
		env := editing.Asked(s)
		f, err := env.Open(in.FilePath, workspace.Write)
		if err != nil {
			return ""
		}
		defer f.Close()
		return editing.PreviewWrite(ctx, env, in.FilePath, writeFileEdit(env, f, in, new([]string)), room)
	},
	Activity: func(in writeFileInput) string { return "Writing " + filepath.Base(in.FilePath) },
	Complete: func(_ context.Context, s *session.State, in *writeFileInput) error {
		return editing.RefuseSecret(s, in.FilePath, "content", in.Content)
	},
	Run: runWriteFile,
})

func runWriteFile(ctx context.Context, env tool.Env, in writeFileInput) (tool.Result, error) {
	f, err := env.Open(in.FilePath, workspace.Write)
	if err != nil {
		return tool.Result{}, wording.PathRefusal(env, in.FilePath, err)
	}
	defer f.Close()
	if err := editing.CheckNotebook(in.Content, in.FilePath, f.Path); err != nil {
		return tool.Result{}, err
	}
	var notes []string
	gone := editing.Missing(f) && editing.WasDeleted(ctx, env, in.FilePath)
	changes, err := env.Files.Update(ctx, editing.By(env, "write_file"), writeFileEdit(env, f, in, &notes))
	if err != nil {
		return tool.Result{}, editing.Guard{Name: "write_file", Unread: 2, Changed: 3}.Refusal(ctx, env, in.FilePath,
			err)
	}
	c := changes[0]
	kind, lines := "update", editing.LineCount(c.New)
	name, count := wording.ShownName(env, in.FilePath), wording.Plural(lines, "line", "lines")
	text := "No change: " + name + " already has this content."
	switch {
	case c.Old == nil:
		kind, text = "create", "Created "+name+" ("+count+")"
		if gone {
			notes = append(notes, "[the file was deleted after you read it]")
		}
	case !bytes.Equal(c.Old, c.New):
		added, removed := c.LinesChanged()
		text = fmt.Sprintf("Wrote %s (%s; +%d -%d)", name, count, added, removed)
		if _, err := textedit.Detect(c.Old); err != nil {
			text = fmt.Sprintf("Wrote %s (%s; before: %s, not text)", name, count, results.Size(int64(len(c.Old))))
		}
	default:
		notes = nil
	}
	return tool.Result{
		Text: text + editing.Notes(ctx, env, notes, c), Shows: []string{c.Path},
		Meta: editing.Meta(struct {
			Kind  string `json:"kind"`
			Lines int    `json:"lines"`
		}{kind, lines}, c),
	}, nil
}

// writeFileEdit is the change of the file. It sets notes for the answer.
func writeFileEdit(env tool.Env, f filestate.File, in writeFileInput, notes *[]string) filestate.Edit {
	return filestate.Edit{
		File: f, Version: filestate.Version(in.Version), Whole: true,
		Change: func(old []byte) (content []byte, err error) {
			if content, *notes, err = writeFileContent(old, in.Content); err == nil {
				err = editing.CheckSettings(env, old, content, in.FilePath, f.Path)
			}
			return content, err
		},
	}
}

// writeFileContent is what will stand in the file: as sent, but a mark that was there stays, and UTF-16 stays UTF-16.
func writeFileContent(old []byte, content string) ([]byte, []string, error) {
	before, _ := textedit.Decode(old) // what was no text has no encoding to keep
	const unknown = "\ufffd"          // what a byte is shown as that is not of the encoding
	if before.Invalid > 0 && strings.Contains(content, unknown) && !bytes.Contains(old, []byte(unknown)) {
		return nil, nil, tool.Numbered(tool.EncodingMix, 12, "File has bytes that are not %s (%d), which read_file "+
			"shows as %s: written like this they would be lost. Use edit_file, which keeps every byte that it does "+
			"not name, or first make the file UTF-8, with iconv in run_shell.", before.Encoding, before.Invalid,
			unknown)
	}
	after, _ := textedit.Decode([]byte(content))
	var notes []string
	if from, to := writeFileEnds(before), writeFileEnds(after); from != "" && to != "" && from != to {
		notes = append(notes, "[line ends changed: "+from+" → "+to+"]")
	}
	was := before.Encoding
	raw, err := []byte(content), error(nil)
	if was.Mark() > 0 && was.Editable() {
		raw, err = was.Encode([]byte(strings.TrimPrefix(content, "\ufeff")))
	}
	if is, _ := textedit.Detect(raw); is.String() != was.String() ||
		before.Invalid > 0 && is.String() == after.Encoding.String() {
		notes = append(notes, "[encoding changed to UTF-8]")
	}
	return raw, notes, err
}

func writeFileEnds(t textedit.Text) string {
	switch {
	case t.CRLF > 0 && t.LF > 0:
		return "mixed"
	case t.CRLF > 0:
		return "CRLF"
	case t.LF > 0:
		return "LF"
	}
	return ""
}
