package tools

import (
	"context"
	"strings"

	"codehand/filestate"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// unreadRefusal sends the model to read_file, unless reading could not help.
func (g guard) unreadRefusal(ctx context.Context, env tool.Env, path string) error {
	f, err := env.Open(path, workspace.Read)
	if err == nil {
		defer f.Close()
		err = g.look(ctx, env, f)
	}
	if err == nil {
		return tool.Numbered(tool.FileNotRead, g.unread, "File has not been read yet: %s. Read it first before writing to it.", path)
	}
	return pathRefusal(env, path, err)
}

// look opens a file that was not read for what reading would find.
func (g guard) look(ctx context.Context, env tool.Env, f filestate.File) error {
	r, err := env.Files.Open(ctx, f)
	if err != nil {
		return err
	}
	defer r.Close()
	head, err := sniff(r)
	if err == nil && g.inTheWay(head) {
		return existsRefusal(g.head)
	}
	if err == nil && isNotebook(f.Path) {
		return readableBook(ctx, env, f.Path, head, r)
	}
	if e, _ := textedit.Detect(head); err == nil && !e.Editable() && g.name != "write_file" {
		return textedit.ErrEncoding
	}
	return err
}

func (g guard) inTheWay(content []byte) bool {
	return g.creates && strings.TrimSpace(textedit.Shown(content)) != ""
}
