package clients

var crush = Client{
	ID: "crush", Title: "Crush", Known: "documented",
	Names:   []string{"crush"},
	Profile: Profile{Name: "crush", Runes: 20_000, Images: FirstImage, Numbers: true},
}
