package auth

// A Group is what the operator says about the principals of one group, as the issuer of their tokens names it.
type Group struct {
	Name   string
	Values Values
}

// ofGroups returns what is said about a principal in groups: in the order of said, which is the order of the file, not
// that of the token.
func ofGroups(said []Group, groups []string) []Values {
	var list []Values
	for _, g := range said {
		for _, name := range groups {
			if g.Name == name {
				list = append(list, g.Values)
				break
			}
		}
	}
	return list
}
