package clients

// chatgpt keeps no transport session: openai/openai-apps-sdk-examples#165 and #201.
var chatgpt = Client{
	ID: "chatgpt", Title: "ChatGPT", Known: "documented",
	Names: []string{"openai-mcp*", "ChatGPT"},
	Profile: Profile{Name: "chatgpt", Runes: 20_000, Images: AllImages, Reopens: true, Found: ByDispatcher,
		Patches: true},
}
