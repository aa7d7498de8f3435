package clients

// zed sends the name of a variable in a header as it stands (zed-industries/zed#60459).
var zed = Client{
	ID: "zed", Title: "Zed", Known: "documented",
	Names:    []string{"Zed"},
	Profile:  Profile{Name: "zed", Runes: 20_000, Images: AllImages},
	Programs: []string{"zed"},
	Schemes:  []string{"zed"},
	Protects: []string{".zed/**"},
	Files:    Files{"~/.config/zed/settings.json", "~/.config/zed/settings.json", `%APPDATA%\Zed\settings.json`, ""},
	Other:    []Files{{MacOS: "~/Library/Application Support/Zed/settings.json"}},
	Texts: Texts{
		Local: servers("context_servers", func(l Launch) entry {
			e := start(l)
			e.Source = "custom"
			return e
		}),
		Remote: servers("context_servers", func(e Endpoint) entry { return entry{Source: "custom", URL: e.URL} }),
		Bridge: servers("context_servers", func(e Endpoint) entry {
			c := command(e)
			c.Source = "custom"
			return c
		}),
	},
	Start:     Start{NoPATH: true, Roots: RootOptional, InHome: true},
	Expansion: verbatim,
}
