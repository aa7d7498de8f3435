package clients

// NamesOf are the names by which a profile is found, as in the table.
func NamesOf(profile string) []string {
	for _, r := range table {
		if r.Name == profile {
			return r.names
		}
	}
	return nil
}
