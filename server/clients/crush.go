package clients

var crush = Client{
	ID: "crush", Title: "Crush", Known: "documented",
	Names:    []string{"crush"},
	Protects: []string{"crush.json", ".crush.json"},
	Profile:  Profile{Name: "crush", Runes: 20_000, Images: FirstImage, Numbers: true},
}
