package clients

// All returns every client, in the order of the index.
func All() []Client { return all }

// NamesOf are the names by which a profile is found.
func NamesOf(profile string) []string {
	var names []string
	for _, c := range callers {
		if c.Profile.Name == profile {
			names = append(names, c.Names...)
		}
	}
	return names
}

// ProfileOf is what Find returns for a client, whether or not we know how it calls itself.
func ProfileOf(c Client) Profile { return c.profile() }
