package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// pages writes a page of section 1 of the manual for each text of --help, which lie in from as the tests hold them:
// codehand.txt, codehand_serve.txt, ... A page shows the text as it is, since people know it from the terminal.
func pages(from, to, version string) error {
	texts, err := filepath.Glob(filepath.Join(from, "codehand*.txt"))
	if err != nil || len(texts) == 0 {
		return fmt.Errorf("%s has no texts of help: %w", from, err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, path := range texts {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".txt"), "_", "-")
		page := page(name, string(text), version)
		if err := os.WriteFile(filepath.Join(to, name+".1"), []byte(page), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func page(name, text, version string) string {
	first, _, _ := strings.Cut(text, ".")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		lines[i] = line
	}
	return fmt.Sprintf(".TH %s 1 \"\" \"codehand %s\"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n%s\n.fi\n",
		strings.ToUpper(name), version, name, strings.Join(strings.Fields(first), " "), strings.Join(lines, "\n"))
}
