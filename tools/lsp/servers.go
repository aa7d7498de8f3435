package lsp

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A Server is a program that speaks the protocol, and what it is for.
type Server struct {
	Name      string
	Argv      []string          // the program is absolute, or a name in PATH
	Languages map[string]string // the protocol's name of a language, by the extension of its files with the dot
	// Init are its initializationOptions, an object; nil: none
	Init json.RawMessage
	// Settings are what it is told where it asks for the settings of a section, by that section; nil: none
	Settings map[string]json.RawMessage
	// Marks are names of files that tell it about the project, such as go.mod: it is told when they change, and a
	// directory with one has its language.
	Marks []string
	// Imports is its command that puts the imports of a file in order, for which it offers no action; "": none.
	Imports string
	// RunsCode says that it runs programs of the project, such as build scripts.
	RunsCode bool
	// Preset says that nobody configured it: it is used where its program is found.
	Preset bool
	Env    []string // besides the usual one, as NAME=value
}

// Knows returns the protocol's name of the language of a file; "": the server does not know it.
func (s Server) Knows(path string) string { return s.Languages[strings.ToLower(filepath.Ext(path))] }

// watches says whether the server is told of changes of a file that nobody opened.
func (s Server) watches(path string) bool {
	return s.Knows(path) != "" || slices.Contains(s.Marks, filepath.Base(path))
}

// Extensions lists the extensions that the server knows, sorted.
func (s Server) Extensions() []string { return slices.Sorted(maps.Keys(s.Languages)) }

// Presets are servers that are used without configuration. Of two for one language the first whose program is found
// counts. The slice is the caller's.
func Presets() []Server {
	return []Server{
		{
			Name: "gopls", Argv: []string{"gopls", "serve"}, Preset: true,
			Languages: map[string]string{".go": "go"},
			Marks:     []string{"go.mod", "go.sum", "go.work"},
			// Diagnostics are asked for, so that they are those of one content.
			Init: json.RawMessage(`{"pullDiagnostics":true,"diagnosticsDelay":"0s","symbolScope":"workspace"}`),
		},
		{
			Name: "typescript-language-server", Argv: []string{"typescript-language-server", "--stdio"}, Preset: true,
			Languages: map[string]string{
				".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescriptreact",
				".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascriptreact",
			},
			Marks: []string{"package.json", "tsconfig.json", "jsconfig.json"},
			// Without its second server, which answers from single files until the project is loaded: a definition was
			// then the import of the name.
			Init: json.RawMessage(`{"disableAutomaticTypingAcquisition":true,"tsserver":{"useSyntaxServer":"never"}}`),
			// It runs the compiler that the project brings.
			RunsCode: true,
		},
		python("basedpyright", "basedpyright-langserver"),
		python("pyright", "pyright-langserver"),
		{
			Name: "rust-analyzer", Argv: []string{"rust-analyzer"}, Preset: true,
			Languages: map[string]string{".rs": "rust"},
			Marks:     []string{"Cargo.toml", "Cargo.lock"},
			// It has read a project before it has looked at all of its libraries, and cannot write what cargo check
			// does.
			Init: json.RawMessage(`{"cachePriming":{"enable":false},"checkOnSave":false}`),
			// Cargo asks for the registry again and again before it sees that there is no network.
			Env:      []string{"CARGO_NET_OFFLINE=true"},
			RunsCode: true, // build scripts and procedural macros
		},
		{
			Name: "clangd", Argv: []string{"clangd"}, Preset: true,
			Languages: map[string]string{
				".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp",
				".hxx": "cpp", ".m": "objective-c", ".mm": "objective-cpp",
			},
			Marks: []string{"compile_commands.json", "compile_flags.txt", ".clangd"},
		},
	}
}

func python(name, program string) Server {
	return Server{
		Name: name, Argv: []string{program, "--stdio"}, Preset: true,
		Languages: map[string]string{".py": "python", ".pyi": "python"},
		Marks:     []string{"pyproject.toml", "pyrightconfig.json", "setup.py", "setup.cfg", "requirements.txt"},
		Settings:  map[string]json.RawMessage{"python.analysis": json.RawMessage(`{"diagnosticMode":"openFilesOnly"}`)},
		Imports:   name + ".organizeimports",
	}
}
