package engines

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"codehand/server/config"
	"codehand/tools/lsp"
	"codehand/tools/session"
)

// languages makes what all sessions reach language servers by. dir is the state directory.
func (o Options) languages(dir string) session.Languages {
	c := o.Config.LSP
	if !c.Enabled {
		return session.Languages{}
	}
	return session.Languages{LSP: lsp.New(languageServers(c.Servers), lsp.Limits{}, o.Log),
		ServerDir: filepath.Join(dir, "lsp"), ServerSize: c.MaxMemory}
}

// languageServers are those that the operator configured, and behind them those that need no configuration.
func languageServers(said []config.LanguageServer) []lsp.Server {
	presets := lsp.Presets()
	names := map[string]string{} // of languages, by extension
	for _, p := range presets {
		for ext, name := range p.Languages {
			names[ext] = name
		}
	}
	var all []lsp.Server
	for _, s := range said {
		x := lsp.Server{Name: s.Name}
		if i := slices.IndexFunc(presets, func(p lsp.Server) bool { return p.Name == s.Name }); i >= 0 {
			x = presets[i]
			presets = slices.Delete(presets, i, i+1)
		}
		if s.Off {
			continue
		}
		x.Preset = false
		if len(s.Command) > 0 {
			x.Argv = s.Command
		}
		if len(s.Extensions) > 0 {
			x.Languages = map[string]string{}
			for _, ext := range s.Extensions {
				x.Languages[ext] = languageName(s.Language, names[ext], ext)
			}
		}
		if len(s.Init) > 0 {
			x.Init = withInit(x.Init, s.Init)
		}
		all = append(all, x)
	}
	return append(all, presets...)
}

func languageName(said, known, ext string) string {
	switch {
	case said != "":
		return said
	case known != "":
		return known
	}
	return strings.TrimPrefix(ext, ".")
}

// withInit are the options of a server, those that the operator said before its own.
func withInit(own json.RawMessage, said map[string]any) json.RawMessage {
	all := map[string]any{}
	if own != nil {
		_ = json.Unmarshal(own, &all) // an object of ours
	}
	for name, value := range said {
		all[name] = value
	}
	text, err := json.Marshal(all)
	if err != nil {
		return own // config has encoded each value
	}
	return text
}
