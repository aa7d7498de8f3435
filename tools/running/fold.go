package running

import (
	"context"
	"io"

	"codehand/tools/bash"
	"codehand/tools/folding"
	"codehand/tools/results"
	"codehand/tools/shell"
)

// fold is the whole output of a command that has ended, without the lines in which known programs say that all went
// well. The whole is kept, and the first line names the file that holds it. A command that only
// reads is shown as it is, since its reader asked for those lines. ok is false if there is nothing to gain, or if what
// remains is not within form.
func (o *Outcome) fold(ctx context.Context, i shell.Info, size int64, form results.Form) (f folding.Folded, ok bool) {
	if !o.Env.Prefs.ShellFold || o.Env.Analysis == nil || o.Env.Analysis.Class == bash.ReadOnly || i.Fault != "" ||
		size > maxWaited {
		return folding.Folded{}, false
	}
	var text string
	_, err := o.Env.Shell.Read(ctx, i.ID, func(r io.Reader) error {
		all, err := io.ReadAll(io.LimitReader(r, maxWaited))
		text = Printed(i, string(all))
		return err
	})
	if err != nil {
		return folding.Folded{}, false
	}
	f, ok = folding.Fold(text)
	return f, ok && form.Fits(results.FoldedLine(f.Lines, f.What, i.Log)+"\n"+f.Text)
}

// foldedText is what is shown of it, path being that of the whole.
func foldedText(f folding.Folded, path string) string {
	return results.FoldedLine(f.Lines, f.What, path) + "\n" + f.Text
}
