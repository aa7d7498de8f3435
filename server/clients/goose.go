package clients

import (
	"cmp"
	"time"
)

var goose = Client{
	ID: "goose", Title: "Goose", Known: "documented",
	Names:    []string{"goose"},
	Profile:  Profile{Name: "goose", Runes: 20_000, Images: AllImages, Background: 240 * time.Second},
	Programs: []string{"goose"},
	Schemes:  []string{"goose"},
	Files: Files{"~/.config/goose/config.yaml", "~/.config/goose/config.yaml",
		`%APPDATA%\Block\goose\config\config.yaml`, ""},
	Texts: Texts{Local: gooseLocal, Remote: gooseRemote},
	Start: Start{NoPATH: true},
}

func gooseLocal(l Launch) string {
	return "extensions:\n  codehand:\n    name: codehand\n    type: stdio\n    cmd: " +
		quoted(cmp.Or(l.Command, ours)) + "\n    args: " + line(localArgs(l)) + "\n    envs: " +
		line(environment(l)) + "\n    enabled: true\n    timeout: 300\n"
}

// gooseRemote names in env_keys what Goose replaces in headers.
func gooseRemote(e Endpoint) string {
	out := "extensions:\n  codehand:\n    name: codehand\n    type: streamable_http\n    uri: " + quoted(e.URL) + "\n"
	if e.TokenEnv != "" {
		out += "    env_keys: [" + quoted(e.TokenEnv) + "]\n    headers:\n      Authorization: " +
			quoted("Bearer ${"+e.TokenEnv+"}") + "\n"
	}
	return out + "    enabled: true\n    timeout: 300\n"
}
