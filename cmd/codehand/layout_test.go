package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// This file is the plan of the house: which rooms there are, what each may import, and the rules that hold in all of
// them. A failure says what to do. The tables are data: a new room, edge or module is a row here, in the same commit as
// the code that needs it, with the reason in its message.

const module = "codehand"

// root is the directory of the module, seen from this package.
const root = "../.."

// rooms are all packages, from the top down, each with the rooms that it may import.
var rooms = map[string][]string{
	"cmd/codehand":    {"server/nodes", "server", "server/audit", "server/auth", "server/bridge", "server/clients", "server/clients/install", "server/clients/install/forms", "server/config", "server/control", "server/doctor", "server/engines", "server/explain", "server/instructions", "server/issuer", "server/listen", "server/logging", "server/people", "server/public", "server/replies", "server/sessions", "server/state", "server/toolset", "server/userpage", "tools", "tools/bash", "tools/confine/caches", "tools/credentials", "tools/results", "tools/sandbox", "tools/secrets", "tools/tool"},
	"cmd/conformance": {"server", "server/config", "server/engines", "server/listen", "server/mcpgo"},
	"cmd/score":       {}, // knows servers from outside alone, ours too

	"server":         {"server/asking", "server/calls", "server/config", "server/endpoint", "server/engines", "server/explain", "server/listen", "server/live", "server/mcpgo", "server/notices", "server/once", "server/opening", "server/pauses", "server/pipeline", "server/public", "server/recall", "server/replies", "server/sessions", "server/stdio", "server/subagents", "server/team", "server/tenants", "server/toolset", "tools/sandbox", "tools/session"},
	"server/calls":   {"server/answers", "server/asking", "server/jsonrpc", "server/mcpgo", "server/notices", "server/once", "server/pipeline", "server/places", "server/progress", "server/replies", "server/request", "server/sessions", "server/subagents", "server/tenants", "server/toolset", "server/waiting", "tools/agent", "tools/guidance", "tools/running", "tools/session", "tools/tool", "tools/workspace", "tools/language"},
	"server/recall":  {"server/asking", "server/audit", "server/sessions", "tools/past", "tools/secrets", "tools/session"},
	"server/places":  {"server/auth/limits", "server/pipeline", "server/request", "server/sessions", "server/toolset", "tools/tool"},
	"server/opening": {"filestate", "server/config", "server/engines", "server/pipeline", "server/sessions", "server/state", "server/tenants", "tools/hooks", "tools/permission", "tools/results", "tools/session", "tools/shell"},
	"server/explain": {"server/jsonrpc", "server/pipeline", "server/sessions", "server/tenants", "server/toolset", "tools/bash", "tools/permission", "tools/session", "tools/tool"},
	"server/endpoint": {"server/nodes", "server/relay",
		"server/auth", "server/auth/limits", "server/config", "server/jsonrpc", "server/listen", "server/metrics", "server/pipeline", "server/public", "server/request",
		"server/sessions", "server/state", "server/stdio", "server/tenants", "tools/results", "tools/session", "tools/tool",
	},
	// Legacy SSE is a connection of stdio with a stream as its output, so the endpoint imports it.
	"server/stdio": {"server/jsonrpc", "server/request", "server/sessions", "server/tenants", "tools/session", "tools/tool"},
	"server/request": {
		"server/auth", "server/auth/limits", "server/clients", "server/jsonrpc", "server/pipeline", "server/resources", "server/sessions", "server/tenants",
		"tools/agent", "tools/permission", "tools/results", "tools/session",
	},
	"server/progress": {"server/clients", "tools/results"},
	"server/once": {
		"filestate/disk", "filestate/journal", "filestate/seen", "server/jsonrpc", "server/request", "server/state", "tools/tool",
	},
	"server/waiting":      {"server/jsonrpc", "server/request", "tools/session"},
	"server/cards":        {},
	"server/toolset":      {"server/cards", "server/clients", "server/jsonrpc", "tools/catalog", "tools/permission", "tools/results", "tools/session", "tools/tool"},
	"server/instructions": {"server/auth", "server/tenants", "server/toolset", "tools/catalog", "tools/guidance", "tools/session", "tools/tool"},
	"server/hub":          {"server/request", "server/sessions", "tools/session"},
	// the look of the pages of a sign-in; what is on record; what clients are told to connect
	"server/console": {
		"server/asking", "server/audit", "server/auth", "server/auth/limits", "server/clients", "server/pauses",
		"server/public", "server/sessions", "server/signin", "tools/results", "tools/session", "tools/tool",
	},
	"server/members":  {"server/auth", "server/console", "server/oauth", "server/people", "server/signin"},
	"server/live":     {"server/asking", "server/auth/peers", "server/sessions"},
	"server/pauses":   {"server/pipeline", "server/state"},
	"server/userpage": {"filestate/journal", "server/asking", "server/audit", "server/auth", "server/auth/peers", "server/console", "server/live", "server/pauses", "server/sessions", "tools/session"}, // the journal is only read
	"server/team": {
		"server/nodes", "server/relay", "server/asking", "server/audit", "server/auth", "server/auth/limits",
		"server/config", "server/console", "server/control", "server/endpoint", "server/issuer", "server/jsonrpc",
		"server/listen", "server/members", "server/metrics", "server/oauth", "server/pauses", "server/people",
		"server/pipeline",
		"server/public", "server/request", "server/resources", "server/sessions", "server/signin", "server/state",
		"server/tenants", "server/toolset", "tools/sandbox", "tools/session", "tools/tool",
	},
	"server/replies": {"server/answers", "server/jsonrpc", "server/request", "server/resources", "tools/results", "tools/tool"},
	"server/subagents": {
		"server/jsonrpc", "server/pipeline", "server/request", "server/sessions", "server/state", "server/waiting", "tools/agent",
		"tools/agent/loop", "tools/hooks", "tools/permission", "tools/session", "tools/tool",
	},
	"server/engines": {"server/nodes", "filestate", "filestate/lock", "server/config", "server/listen", "server/sessions", "server/state", "server/toolset", "tools", "tools/agent", "tools/agent/loop", "tools/agent/models", "tools/confine", "tools/confine/caches", "tools/credentials", "tools/git/changes", "tools/guarded", "tools/hooks", "tools/keys", "tools/media", "tools/mounts", "tools/mounts/pins", "tools/mounts/upstream", "tools/past", "tools/permission", "tools/sandbox", "tools/search", "tools/session", "tools/settings", "tools/tool", "tools/web", "tools/web/guard", "tools/web/search", "tools/lsp"},
	"server/mcpgo": {
		"server/cards", "server/hub", "server/instructions", "server/jsonrpc", "server/notices", "server/prompts", "server/replies", "server/request",
		"server/resources", "server/sessions", "server/tenants", "server/toolset", "tools/results", "tools/session",
	},
	"server/notices": {"server/hub", "server/jsonrpc", "server/pipeline", "server/prompts", "server/replies", "server/request", "server/resources", "server/sessions", "server/tenants", "tools/running", "tools/session", "tools/shell", "tools/tool"},
	"server/answers": {"server/jsonrpc", "server/resources", "tools/tool"},
	"server/prompts": {"server/resources", "tools/guidance", "tools/results", "tools/session", "tools/skills"}, // skills are both
	"server/resources": {
		"filestate", "server/auth", "server/jsonrpc", "server/pipeline", "server/sessions", "server/tenants", "tools/guidance", "tools/permission",
		"tools/results", "tools/session", "tools/shell", "tools/skills", "tools/tool", "tools/workspace",
	},
	"server/asking": {"server/pipeline", "server/state", "tools/results", "tools/session", "tools/tool"},
	"server/sessions": {
		"filestate", "filestate/journal", "filestate/lock", "server/auth", "server/config", "server/jsonrpc", "server/state",
		"server/tenants", "tools/permission", "tools/session", "tools/shell", "tools/tool",
	},
	"server/tenants": {"server/auth", "server/config", "server/toolset", "filestate/lock", "tools/confine", "tools/guarded", "tools/permission", "tools/results", "tools/sandbox", "tools/search", "tools/session", "tools/shell", "tools/skills", "tools/tasks", "tools/tool", "tools/workspace"},
	"server/audit":   {"server/pipeline", "tools/results", "tools/secrets", "tools/tool"},
	"server/bridge":  {"server/config", "server/jsonrpc", "server/stdio", "tools/results"},
	"server/doctor": {"filestate/exchange", "server/clients", "server/auth", "server/clients/install", "server/config", "server/nodes", "server/pauses", "server/public", "server/relay", "server/sessions", "server/state", "tools/confine", "tools/results",
		"tools/sandbox", "tools/web/search"},
	"server/jsonrpc": {},
	"server/listen":  {"server/auth", "server/config"},
	"server/metrics": {"server/pipeline", "server/state", "tools/results", "tools/shell", "tools/tool"},
	"server/pipeline": {
		"filestate", "tools/agent", "tools/bash", "tools/hooks", "tools/permission", "tools/results", "tools/secrets",
		// a file that no answer opens is refused in the words of its tool
		"tools/session", "tools/textedit", "tools/tool", "tools/wording", "tools/workspace",
	},
	"server/auth":            {"server/auth/limits", "server/auth/peers"},
	"server/auth/limits":     {},
	"server/auth/peers":      {"tools/sandbox"},                                                    // whether a caller is a confined command
	"server/oauth":           {"server/auth", "server/clients", "server/state", "tools/web/guard"}, // schemes of apps; metadata documents of clients come from anywhere
	"server/people":          {"server/auth"},
	"server/signin":          {"server/auth", "server/oauth", "server/people", "server/state", "tools/permission"}, // names and order of modes
	"server/control":         {"server/oauth", "server/state", "tools/sandbox"},                                    // the Store, where no server runs; whether a caller is a confined command
	"server/issuer":          {"server/auth", "server/config"},
	"server/config":          {"server/clients/install/forms", "server/nodes", "server/auth", "server/auth/limits", "server/state", "tools/agent", "tools/credentials", "tools/keys", "tools/permission", "tools/web/guard", "tools/web/search"}, // what a host and a private network are; which flags of an agent ask nobody; how a host of git is written; how a table of TOML is taken out
	"server/nodes":           {"server/state"},
	"server/relay":           {},
	"server/state":           {},
	"server/state/storetest": {"server/state"}, // imported by tests only
	"server/clients":         {},
	"server/public":          {},
	"server/logging":         {},
	// What it writes is a change of a file like any other, and shown as one.
	"server/clients/install":       {"filestate", "filestate/journal", "filestate/lock", "server/clients", "server/clients/install/forms", "tools/textedit"},
	"server/clients/install/forms": {},

	"packaging/pack":    {}, // a command for releases alone
	"packaging/picture": {}, // a command that draws for README alone
	"server/blackbox":   {"tools/bash"},
	"server/replaytest": {"filestate/leaktest"},

	"tools": {"tools/handover", "tools/past", "tools/agent", "tools/delegating", "tools/typing", "tools/git/changes", "filestate", "filestate/disk", "filestate/journal", "filestate/lock", "filestate/owner", "tools/bash", "tools/catalog", "tools/editing", "tools/git", "tools/history", "tools/keeping", "tools/media", "tools/mounts", "tools/notebook", "tools/patch", "tools/permission", "tools/planning", "tools/results", "tools/running", "tools/search", "tools/search/ignore", "tools/session",
		"tools/settings", "tools/shell", "tools/skills", "tools/skills/loading", "tools/tasks", "tools/textedit", "tools/tool", "tools/viewing", "tools/web/search", "tools/wording", "tools/workspace", "tools/browsing", "tools/web", "tools/language", "tools/lsp", "tools/worktrees"},
	"tools/git":           {"filestate", "filestate/disk"},
	"tools/git/changes":   {"filestate/disk", "tools/git", "tools/search/ignore"},
	"tools/guarded":       {},
	"tools/bash":          {"tools/bash/programs", "tools/git", "tools/guarded"},
	"tools/bash/programs": {},
	"tools/editing": {"filestate", "filestate/disk", "filestate/journal", "filestate/lock", "tools/notebook", "tools/permission", "tools/results", "tools/secrets", "tools/session", "tools/textedit", "tools/tool",
		"tools/viewing", "tools/wording", "tools/workspace", "tools/language"}, // an edit is guarded by what viewing has shown
	"tools/guidance": {"tools/results", "tools/session", "tools/skills", "tools/textedit", "tools/tool", "tools/wording"},
	"tools/keeping":  {"filestate", "filestate/disk", "filestate/journal", "tools/bash", "tools/git", "tools/git/changes", "tools/guarded", "tools/session", "tools/tool", "tools/wording"},
	"tools/past":     {}, // types alone: the server implements them
	"tools/handover": {"filestate/journal", "tools/history", "tools/past", "tools/permission", "tools/planning", "tools/results", "tools/secrets", "tools/session", "tools/shell", "tools/tasks", "tools/tool", "tools/wording", "tools/workspace"},
	"tools/history":  {"filestate", "filestate/disk", "filestate/journal", "tools/editing", "tools/results", "tools/session", "tools/textedit", "tools/textedit/compare", "tools/tool", "tools/wording", "tools/workspace"}, // diffs and refusals are those of edits
	"tools/planning": {"filestate", "filestate/disk", "filestate/lock", "tools/editing", "tools/permission", "tools/results", "tools/session", "tools/tasks", "tools/tool", "tools/wording", "tools/workspace"},             // a plan file is changed on behalf of a call, as edits are
	"tools/typing":   {"tools/bash", "tools/permission", "tools/results", "tools/running", "tools/sandbox", "tools/session", "tools/shell", "tools/terminal", "tools/tool", "tools/wording"},
	"tools/running":  {"filestate", "filestate/disk", "filestate/journal", "tools/bash", "tools/confine", "tools/credentials", "tools/folding", "tools/git", "tools/git/changes", "tools/keeping", "tools/permission", "tools/results", "tools/sandbox", "tools/search", "tools/search/page", "tools/secrets", "tools/session", "tools/shell", "tools/tool", "tools/wording", "tools/workspace"},
	"tools/viewing": {"tools/archive", "filestate", "filestate/owner", "tools/media", "tools/notebook", "tools/results", "tools/search", "tools/search/page", "tools/search/ignore", "tools/shell", "tools/textedit", "tools/tool",
		"tools/wording", "tools/workspace"},
	"tools/wording": {"filestate", "filestate/disk", "filestate/lock", "tools/results", "tools/sandbox", "tools/search", "tools/shell", "tools/textedit", "tools/tool", "tools/workspace"},
	"tools/tooltest": {"filestate", "filestate/journal", "server/state", "tools/catalog", "tools/media", "tools/permission", "tools/results", "tools/sandbox", "tools/search", "tools/session", "tools/shell", "tools/skills", "tools/tasks",
		"tools/tool", "tools/web/search", "tools/workspace", "tools/web"}, // imported by tests only, so a Store is no edge upwards
	"tools/tool": {"tools/agent", "tools/bash", "tools/catalog", "tools/permission", "tools/session"},
	"tools/session": {"tools/agent", "filestate", "filestate/disk", "tools/catalog", "tools/confine", "tools/media", "tools/permission", "tools/results", "tools/sandbox", "tools/search", "tools/settings", "tools/shell", "tools/skills", "tools/web/search",
		"tools/tasks", "tools/workspace", "tools/web", "tools/lsp"},

	"tools/delegating": {"tools/agent", "tools/agent/loop", "tools/results", "tools/running", "tools/secrets", "tools/shell", "tools/tool", "tools/wording", "tools/worktrees"},

	"tools/agent":                      {"filestate/owner", "tools/catalog", "tools/agent/loop", "tools/permission", "tools/results", "tools/sandbox", "tools/secrets", "tools/skills"},
	"tools/catalog":                    {},
	"tools/hooks":                      {"tools/bash", "tools/catalog", "tools/permission", "tools/sandbox"},
	"tools/media":                      {"tools/sandbox"}, // poppler's programs
	"tools/language":                   {"filestate", "filestate/disk", "filestate/owner", "tools/confine", "tools/lsp", "tools/results", "tools/sandbox", "tools/session", "tools/textedit", "tools/tool", "tools/wording", "tools/workspace"},
	"tools/lsp":                        {"tools/sandbox", "tools/textedit"},
	"tools/lsp/lsptest":                {},
	"tools/mounts":                     {"tools/mounts/pins", "tools/mounts/upstream", "tools/permission", "tools/results", "tools/running", "tools/secrets", "tools/session", "tools/shell", "tools/tool", "tools/wording"}, // a call that goes on becomes a job
	"tools/mounts/pins":                {"filestate/lock", "tools/mounts/upstream"},
	"tools/mounts/upstream":            {"tools/sandbox"},
	"tools/archive":                    {},
	"tools/notebook":                   {},
	"tools/patch":                      {},
	"tools/folding":                    {},
	"tools/permission":                 {"tools/bash", "tools/catalog", "tools/guarded", "tools/search/ignore"},
	"tools/results":                    {"tools/secrets"},
	"tools/secrets":                    {},
	"tools/sandbox":                    {"tools/sandbox/cgroup", "tools/sandbox/kernel", "tools/sandbox/probe", "tools/sandbox/seatbelt"},
	"tools/sandbox/seatbelt":           {"tools/sandbox/kernel"}, // what a Profile is
	"tools/sandbox/cgroup":             {},
	"tools/sandbox/kernel":             {}, // comes before all others when the program starts, so it needs little
	"tools/sandbox/probe":              {},
	"tools/confine/caches":             {},
	"tools/confine/look":               {},
	"tools/credentials":                {"tools/sandbox"}, // the person's own git runs outside
	"tools/confine":                    {"filestate/owner", "tools/bash/programs", "tools/confine/caches", "tools/confine/look", "tools/credentials", "tools/git", "tools/guarded", "tools/permission", "tools/sandbox", "tools/sandbox/proxy", "tools/web/guard"},
	"tools/search":                     {"filestate/disk", "tools/search/define", "tools/search/ignore", "tools/search/index", "tools/search/page", "tools/search/pattern"},
	"tools/search/define":              {},
	"tools/search/index":               {}, // pure: what is remembered between searches
	"tools/search/pattern":             {},
	"tools/search/page":                {},
	"tools/search/ignore":              {},
	"tools/settings":                   {},
	"tools/screen":                     {},
	"tools/shell":                      {"tools/sandbox", "tools/secrets", "tools/terminal"}, // what is kept has no secrets
	"tools/terminal":                   {"tools/sandbox", "tools/screen", "tools/secrets"},
	"tools/skills":                     {"tools/search/ignore"}, // patterns of the key paths
	"tools/skills/loading":             {"tools/permission", "tools/running", "tools/skills", "tools/tool", "tools/wording"},
	"tools/tasks":                      {},
	"tools/textedit":                   {"filestate/splices", "tools/textedit/compare"},
	"tools/textedit/compare":           {},
	"tools/sandbox/proxy":              {"tools/web/guard"},
	"tools/web/guard":                  {},
	"tools/web":                        {"tools/web/guard", "tools/web/pages"},
	"tools/web/pages":                  {},
	"tools/worktrees":                  {"tools/results", "tools/running", "tools/session", "tools/shell", "tools/tool", "tools/wording", "tools/workspace"},
	"tools/browsing":                   {"tools/media", "tools/permission", "tools/results", "tools/secrets", "tools/tool", "tools/web", "tools/wording"},
	"tools/web/search":                 {"tools/keys", "tools/web/guard"},
	"tools/keys":                       {},
	"tools/agent/loop":                 {},
	"tools/agent/models":               {"tools/agent/loop", "tools/agent/wire"},
	"tools/agent/wire":                 {"tools/agent/loop"},
	"tools/search/pattern/patterntest": {},
	"tools/agent/modelstest":           {"tools/agent/loop"}, // imported by tests only
	"tools/workspace":                  {},

	"filestate":          {"filestate/disk", "filestate/exchange", "filestate/fault", "filestate/journal", "filestate/lines", "filestate/lock", "filestate/owner", "filestate/seen", "filestate/splices"},
	"filestate/journal":  {"filestate/disk", "filestate/fault", "filestate/lines", "filestate/lock", "filestate/owner", "filestate/splices"},
	"filestate/disk":     {},
	"filestate/exchange": {"filestate/disk", "filestate/fault"},
	"filestate/fault":    {},
	"filestate/leaktest": {},
	"filestate/lines":    {},
	"filestate/lock":     {"filestate/disk"},
	"filestate/owner":    {},
	"filestate/seen":     {"filestate/disk", "filestate/lines", "filestate/splices"},
	"filestate/splices":  {"filestate/lines"},
}

// modules are the third-party modules, each with the rooms that may import it.
var modules = []struct {
	path      string
	rooms     []string
	testsOnly bool
}{
	{path: "code.dny.dev/ssrf", rooms: []string{"tools/web/guard"}},
	{path: "github.com/PuerkitoBio/goquery", rooms: []string{"tools/web/pages"}},
	{path: "github.com/andybalholm/cascadia", rooms: []string{"tools/web/pages"}}, // goquery's selectors, compiled once
	{path: "github.com/bmatcuk/doublestar/v4", rooms: []string{"tools/search"}},
	{path: "github.com/charmbracelet/x/ansi", rooms: []string{"tools/results", "tools/screen"}},
	{path: "github.com/charmbracelet/x/powernap", rooms: []string{"tools/lsp"}}, // its types of the protocol alone
	{path: "github.com/charmbracelet/x/vt", rooms: []string{"tools/screen"}},    // an emulator of terminals
	{path: "github.com/coreos/go-oidc/v3", rooms: []string{"server/issuer"}},
	{path: "github.com/go-webauthn/webauthn", rooms: []string{"server/signin"}},
	{path: "github.com/goccy/go-yaml", rooms: []string{"server/blackbox", "server/clients", "server/clients/install/forms", "tools/skills"}},
	{path: "github.com/gofrs/flock", rooms: []string{"filestate/leaktest", "filestate/lock", "server/auth", "server/replaytest", "server/state"}},
	{path: "github.com/google/jsonschema-go", rooms: []string{"tools/mounts", "tools/tool", "tools/tooltest"}}, // schemas of mounted tools, and of ours in tests
	{path: "github.com/hanwen/go-fuse/v2", rooms: []string{"filestate"}, testsOnly: true},
	{path: "github.com/mark3labs/mcp-go", rooms: []string{
		"server", "server/answers", "server/asking", "server/blackbox", "server/bridge", "server/calls", "server/endpoint", "server/hub", "server/mcpgo", "server/notices", "server/prompts", "server/replies", "server/subagents",
		"server/resources", "server/team", "server/toolset", "tools/mounts", "tools/mounts/upstream", "cmd/conformance",
	}}, // all but server, server/mcpgo and tools/mounts/upstream use its types alone: TestOneGateway
	{path: "github.com/nats-io/nats.go", rooms: []string{"server/relay", "server/state"}}, // never the server, which tests build from .ci/nats
	{path: "github.com/pelletier/go-toml/v2", rooms: []string{"server/clients", "server/clients/install/forms", "server/config"}},
	{path: "github.com/prometheus/client_model", rooms: []string{"server/metrics"}, testsOnly: true}, // with common, reads our page
	{path: "github.com/prometheus/common", rooms: []string{"server/metrics"}, testsOnly: true},
	{path: "github.com/rogpeppe/go-internal", rooms: []string{"cmd/codehand", "server", "server/blackbox", "server/clients/install", "server/replaytest", "tools/web/pages"}, testsOnly: true},
	{path: "github.com/sergi/go-diff", rooms: []string{"tools/textedit/compare"}},
	{path: "github.com/sourcegraph/jsonrpc2", rooms: []string{"tools/lsp"}},
	{path: "github.com/spf13/cobra", rooms: []string{"cmd/codehand"}},
	{path: "github.com/spf13/pflag", rooms: []string{"cmd/codehand"}}, // the errors of cobra's flags
	{path: "github.com/tailscale/hujson", rooms: []string{"server/clients/install/forms"}},
	{path: "go.uber.org/goleak", rooms: []string{"filestate/leaktest"}, testsOnly: true},
	{path: "golang.org/x/crypto", rooms: []string{"server/blackbox", "server/people"}}, // its server of ssh in tests
	{path: "golang.org/x/image", rooms: []string{"tools/media"}},
	{path: "golang.org/x/net", rooms: []string{"server/blackbox", "tools/web/guard", "tools/web", "tools/web/pages"}}, // idna; its dnsmessage and html in tests
	{path: "golang.org/x/term", rooms: []string{"cmd/codehand"}},                                                      // typing a password unseen
	{path: "golang.org/x/text", rooms: []string{"server/people", "tools/guarded", "tools/permission", "tools/textedit"}},
	{path: "mvdan.cc/sh/v3", rooms: []string{"tools/bash"}},
	{path: "golang.org/x/sys", rooms: []string{"filestate", "filestate/disk", "filestate/exchange", "server/doctor", "tools/confine/look", "tools/credentials", "tools/git/changes", "tools/sandbox", "tools/sandbox/cgroup", "tools/sandbox/kernel", "tools/sandbox/probe", "tools/search", "tools/workspace"}},
}

// guarded are packages of the standard library that only some rooms may import, and what the others do.
var guarded = map[string]struct {
	rooms   []string
	instead string
}{
	"unsafe":  {[]string{"filestate", "tools/secrets", "tools/sandbox", "tools/sandbox/kernel", "tools/sandbox/probe", "tools/search"}, "do without"},
	"reflect": {[]string{"tools/screen", "tools/tool"}, "use a type parameter, or slices.Equal, maps.Equal"},
	"os/exec": {[]string{"cmd/codehand", "cmd/score", "server/clients", "tools/sandbox"}, "start programs with tools/sandbox"},
}

// topLevel is what may lie beside go.mod. Names that begin with a dot and are not here are a developer's own.
var topLevel = []string{
	"cmd", "server", "tools", "filestate", "testdata", "packaging", "docs", "changelog", "third_party",
	"README.md", "AGENTS.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE",
	"go.mod", "go.sum", "go.work", "go.work.sum", "Dockerfile", "server.json",
}

// mechanisms are names that say nothing about what a room is for.
var mechanisms = []string{"internal", "pkg", "util", "utils", "common", "helpers", "types", "base", "manager", "misc"}

// testRooms are for tests: they are imported by _test files and by each other, so never shipped, and may use what tests
// may.
var testRooms = []string{"filestate/leaktest", "server/blackbox", "server/replaytest", "server/state/storetest", "tools/agent/modelstest", "tools/lsp/lsptest", "tools/search/pattern/patterntest", "tools/tooltest"}

// A room is one package as it is on disk.
type room struct {
	name  string // its path below the module
	files []*file
}

// A file is one Go file of a room, of whatever system it is for.
type file struct {
	name   string
	test   bool
	source []byte
	tree   *ast.File
}

// at is a place in a file, for a failure.
func (r *room) at(f *file, n ast.Node) string {
	return path.Join(r.name, f.name) + ":" + strconv.Itoa(positions.Position(n.Pos()).Line)
}

// imported is the path of an import.
func imported(spec *ast.ImportSpec) string {
	p, _ := strconv.Unquote(spec.Path.Value)
	return p
}

// house reads every package of the module once.
var house = sync.OnceValues(func() ([]*room, error) {
	out, err := goTool("list", "-e", "-tags=conformance,score", "-json=Dir,ImportPath", "./...")
	if err != nil {
		return nil, err
	}
	var found []*room
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Dir, ImportPath string }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		r := &room{name: strings.TrimPrefix(p.ImportPath, module+"/")}
		if r.files, err = readFiles(p.Dir); err != nil {
			return nil, err
		}
		found = append(found, r)
	}
})

// readFiles parses all Go files of a directory, also those that this system does not build.
func readFiles(dir string) ([]*file, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*file
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := parseFile(name, source)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// positions are those of all files, since the types of several rooms are checked together.
var positions = token.NewFileSet()

func parseFile(name string, source []byte) (*file, error) {
	tree, err := parser.ParseFile(positions, name, source, parser.ParseComments)
	return &file{name: filepath.Base(name), test: strings.HasSuffix(name, "_test.go"), source: source, tree: tree}, err
}

func goTool(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = errors.New("go " + strings.Join(args, " ") + ": " + string(e.Stderr))
	}
	return out, err
}

func readHouse(t *testing.T) []*room {
	t.Helper()
	t.Parallel()
	found, err := house()
	if err != nil {
		t.Fatalf("reading the packages: %v", err)
	}
	return found
}

func TestRooms(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range readHouse(t) {
		seen[r.name] = true
		if _, ok := rooms[r.name]; !ok {
			t.Errorf("%s is not in the table of rooms: put it into a room that there is, or add a row with what it may import", r.name)
		}
		for _, part := range strings.Split(r.name, "/") {
			if slices.Contains(mechanisms, part) {
				t.Errorf("%s: name the room for the thing that it owns, not %q", r.name, part)
			}
		}
	}
	for name, may := range rooms {
		if !seen[name] {
			t.Errorf("%s is in the table of rooms and not on disk: delete its row", name)
		}
		for _, other := range may {
			if _, ok := rooms[other]; !ok {
				t.Errorf("%s may import %s, which is not in the table of rooms: delete it there", name, other)
			}
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		// The binary and what tests and profiles leave behind are in .gitignore.
		ignored := name == module || name == "node_modules" || path.Ext(name) == ".test" || path.Ext(name) == ".prof"
		if !strings.HasPrefix(name, ".") && !ignored && !slices.Contains(topLevel, name) {
			t.Errorf("%s does not belong to the top level: move it into a room, testdata or packaging", name)
		}
	}
}

func TestImports(t *testing.T) {
	for _, r := range readHouse(t) {
		for _, f := range r.files {
			for _, spec := range f.tree.Imports {
				p := imported(spec)
				if text := forbidden(r, f, p); text != "" {
					t.Errorf("%s imports %s: %s", r.at(f, spec), p, text)
				}
			}
		}
	}
}

func TestImportsOfTestRooms(t *testing.T) {
	t.Parallel()
	product, test := &file{name: "a.go"}, &file{name: "a_test.go", test: true}
	for _, c := range []struct {
		room string
		file *file
		bad  bool
	}{
		{"server", product, true},
		{"server", test, false},
		{"server/replaytest", test, false},
	} {
		text := forbidden(&room{name: c.room}, c.file, module+"/filestate/leaktest")
		if bad := strings.Contains(text, "for tests"); bad != c.bad {
			t.Errorf("%s/%s imports a room for tests: the rule says %q", c.room, c.file.name, text)
		}
	}
}

// forbidden says why a file may not import p, and what to do.
func forbidden(r *room, f *file, p string) string {
	test := f.test || slices.Contains(testRooms, r.name)
	if other, ok := strings.CutPrefix(p, module+"/"); ok {
		if !test && slices.Contains(testRooms, other) {
			return "the room is for tests: import it in a _test file, or move what the product needs to a room of the product"
		}
		if test || slices.Contains(rooms[r.name], other) {
			return ""
		}
		return "the table of rooms does not allow it; hand the data down as an argument, or add the edge with its reason"
	}
	if g, ok := guarded[p]; ok && !test && !slices.Contains(g.rooms, r.name) {
		return "only " + strings.Join(g.rooms, ", ") + " may; " + g.instead
	}
	if first, _, _ := strings.Cut(p, "/"); !strings.Contains(first, ".") {
		return ""
	}
	for _, m := range modules {
		if p != m.path && !strings.HasPrefix(p, m.path+"/") {
			continue
		}
		switch {
		case !slices.Contains(m.rooms, r.name):
			return "only " + strings.Join(m.rooms, ", ") + " may; use the door of that room"
		case m.testsOnly && !test:
			return "the module is for tests only"
		}
		return ""
	}
	return "the module is not in the table; a new one needs a row there, and its licence, last release and what it replaces in the commit message"
}

func TestGoMod(t *testing.T) {
	t.Parallel()
	out, err := goTool("mod", "edit", "-json")
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	direct, listed := map[string]bool{}, map[string]bool{}
	for _, m := range modules {
		listed[m.path] = true
	}
	for _, r := range mod.Require {
		if !r.Indirect {
			direct[r.Path] = true
		}
	}
	for _, p := range slices.Sorted(maps.Keys(direct)) {
		if !listed[p] {
			t.Errorf("go.mod requires %s, which is not in the table of modules: add its row, or remove it with go mod tidy", p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(listed)) {
		if !direct[p] {
			t.Errorf("%s is in the table of modules and not a direct requirement of go.mod: run go mod tidy, and delete the row if nothing imports it", p)
		}
	}
}

// Every exported name of the product says what it is for. Methods that the standard library's interfaces ask for need
// no words, and a constant or variable may stand below the words of its group.
func TestRuleComments(t *testing.T) {
	for _, r := range readHouse(t) {
		for _, f := range r.files {
			if f.test || slices.Contains(testRooms, r.name) || ast.IsGenerated(f.tree) {
				continue
			}
			for _, n := range uncommented(f) {
				t.Errorf("%s: an exported name has no comment: say what it is for, or unexport it", r.at(f, n))
			}
		}
	}
}

func TestUncommented(t *testing.T) {
	tree, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
func A() {}
type B struct{}
func (B) C() {}
func (*b) D() {}
func (B) String() string { return "" }
const E = 1
// F and G have words.
const (
	F = 1
	G = 2
)
var h int
`, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if found := uncommented(&file{tree: tree}); len(found) != 4 {
		t.Errorf("%d exported names lack a comment, want A, B, B.C and E", len(found))
	}
}

// standardMethods are those of the standard library's interfaces.
var standardMethods = []string{
	"Error", "String", "Unwrap", "Is", "As", "ServeHTTP", "Read", "Write", "Close", "Len", "Less", "Swap", "MarshalJSON",
	"UnmarshalJSON", "MarshalText", "UnmarshalText", "Enabled", "Handle", "WithAttrs", "WithGroup", "Name",
}

// uncommented finds the exported declarations of a file that have no comment.
func uncommented(f *file) (found []ast.Node) {
	for _, d := range f.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			method := d.Recv != nil && (slices.Contains(standardMethods, d.Name.Name) || !exportedReceiver(d.Recv.List[0].Type))
			if d.Name.IsExported() && d.Doc == nil && !method {
				found = append(found, d)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() && spec.Doc == nil && d.Doc == nil && spec.Comment == nil {
						found = append(found, spec)
					}
				case *ast.ValueSpec:
					if spec.Names[0].IsExported() && spec.Doc == nil && d.Doc == nil && spec.Comment == nil {
						found = append(found, spec)
					}
				}
			}
		}
	}
	return found
}

// exportedReceiver says whether methods of a receiver can be reached from outside by its name.
func exportedReceiver(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return exportedReceiver(e.X)
	case *ast.IndexExpr:
		return exportedReceiver(e.X)
	case *ast.IndexListExpr:
		return exportedReceiver(e.X)
	case *ast.Ident:
		return e.IsExported()
	}
	return false
}

func TestPackageComments(t *testing.T) {
	for _, r := range readHouse(t) {
		var at []string
		for _, f := range r.files {
			if f.tree.Doc == nil {
				continue
			}
			at = append(at, f.name)
			if f.name != "doc.go" && f.name != f.tree.Name.Name+".go" {
				t.Errorf("%s: move the package comment to doc.go or %s.go", path.Join(r.name, f.name), f.tree.Name.Name)
			}
		}
		if len(at) != 1 {
			t.Errorf("%s has %d package comments (%s): it must have one, of 3 to 20 lines: what the room owns and never does", r.name, len(at),
				cmp.Or(strings.Join(at, ", "), "in no file"))
		}
	}
}
