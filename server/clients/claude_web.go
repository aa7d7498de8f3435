package clients

// claudeWeb keeps no transport session: anthropics/claude-ai-mcp#583 and #975.
var claudeWeb = Client{
	ID: "claude-web", Title: "Claude on the web", Known: "documented",
	Names:   []string{"Anthropic*"},
	Profile: Profile{Name: "claude-web", Runes: 50_000, Images: AllImages, Reopens: true},
}
