package viewing

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"codehand/filestate"
	"codehand/tools/archive"
	"codehand/tools/results"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// IsArchive says by its first bytes that the file is an archive.
func (s *File) IsArchive() bool { return archive.Sniff(s.Head) != "" }

// Archive lists what an archive holds, from entry number first on, as many as are asked for; 0: all that there are.
// Nothing is unpacked, and the file does not count as seen.
func (s *File) Archive(ctx context.Context, first, asked int) (tool.Result, error) {
	leave, err := s.env.Media.Hold(ctx, archive.Memory)
	if err != nil {
		return tool.Result{}, err
	}
	defer leave()
	l, err := archive.List(ctx, s.from, s.from.Size(), archive.Sniff(s.Head))
	if damaged, ok := errors.AsType[*archive.DamagedError](err); ok {
		return tool.Result{}, tool.Refuse(tool.BinaryFile, "%s begins as a %s archive and is damaged: %s. This tool "+
			"cannot read binary files. Use run_shell with file or xxd.", s.path, damaged.Format,
			wording.LineOf(results.Clean(damaged.Err.Error()), 200))
	}
	if err != nil {
		return tool.Result{}, err
	}
	first = max(first, 1)
	if first > len(l.Items) && first > 1 {
		return tool.Result{Text: reminder("is shorter than the provided offset (%d). The archive has %s.", first,
			wording.Plural(len(l.Items), "entry", "entries"))}, nil
	}
	stack := &results.Stack{Name: "entries", First: first, Asked: asked, Total: len(l.Items), Form: s.room(),
		Tokens: s.Tokens}
	head := s.archiveHead(l)
	stack.Form.Runes, stack.Form.Bytes = stack.Form.Runes-len(head), stack.Form.Bytes-len(head)
	for _, e := range l.Items[min(first-1, len(l.Items)):] {
		if !stack.Add(entryLine(e)) {
			break
		}
	}
	notes := stack.Remarks(first > 1 || asked > 0)
	if l.Cut != "" {
		notes = append(notes, "there may be more: "+l.Cut)
	}
	return s.answer(ctx, view{
		lead: head + stack.Partial(fmt.Sprintf("offset=%d", stack.Last()+1)), text: stack.String(), notes: notes,
		facts: shownFacts{pieceFacts: &pieceFacts{"entries", stack.Blocks, first, len(l.Items), stack.More()}},
		spans: []filestate.Span{{}}, fresh: true, quiet: true,
	})
}

// archiveHead says what an archive is, and how one of its entries is read.
func (s *File) archiveHead(l archive.Listing) string {
	total, leads := int64(0), 0
	for _, e := range l.Items {
		total += min(max(e.Size, 0), 1<<40)
		if e.Leads() {
			leads++
		}
	}
	how := map[string]string{"zip": "unzip -p %s NAME", "tar": "tar -xOf %s NAME", "tar.gz": "tar -xzOf %s NAME",
		"tar.bz2": "tar -xjOf %s NAME", "gzip": "gzip -dc %s", "bzip2": "bzip2 -dc %s"}[l.Form]
	text := fmt.Sprintf("%s archive with %s, %s unpacked; read one by run_shell with %s\n", l.Form,
		wording.Plural(len(l.Items), "entry", "entries"), results.Size(total), fmt.Sprintf(how, shell.Word(s.path)))
	if leads > 0 {
		text += fmt.Sprintf("Warning: %s would be written outside of the directory in which one unpacks.\n",
			wording.Plural(leads, "entry", "entries"))
	}
	return text
}

// entryLine is an entry on one line, whatever its name has: size and name.
func entryLine(e archive.Item) string {
	size := results.Count(int(max(e.Size, 0)))
	switch {
	case e.Dir || e.Link != "" || e.Other:
		size = "-"
	case e.Size < 0:
		size = "?"
	}
	line := size + "\t" + oneLineName(e.Name)
	if e.Link != "" {
		line += " -> " + oneLineName(e.Link)
	}
	var marks []string
	if e.Other {
		marks = append(marks, "device or pipe")
	}
	if e.Locked {
		marks = append(marks, "needs a password")
	}
	if e.Leads() {
		marks = append(marks, "leads outside")
	}
	if len(marks) > 0 {
		line += " (" + strings.Join(marks, ", ") + ")"
	}
	return line
}

// maxEntryName is how many characters of a name are shown.
const maxEntryName = 500

// oneLineName is a name that stays in its line; what it has of control characters is shown as escapes.
func oneLineName(name string) string {
	return wording.LineOf(name, maxEntryName)
}
