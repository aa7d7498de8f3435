package clients

var jetbrains = Client{
	ID: "jetbrains", Title: "JetBrains AI Assistant", Known: "documented",
	Names:    []string{"JetBrains*"},
	Profile:  Profile{Name: "jetbrains", Runes: 20_000, Images: FirstImage},
	Schemes:  []string{"jetbrains"},
	Protects: []string{".idea/**"},
}
