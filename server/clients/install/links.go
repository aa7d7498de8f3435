package install

import "codehand/server/clients/install/forms"

// Link is an address that makes a client add codehand by itself, once a person has opened it and agreed; "": there is
// none. It starts the program by its bare name, since it cannot know the path, and holds no token.
func Link(client string) string {
	s, err := snippetOf(client, Want{}, nil)
	if err != nil || s.Texts.Link == nil {
		return ""
	}
	tree, err := forms.JSON.Decode([]byte(s.Text))
	if err != nil {
		return ""
	}
	servers, _ := tree.(map[string]any)[forms.Container(tree)].(map[string]any)
	entry, _ := servers[forms.Name].(map[string]any)
	return s.Texts.Link(forms.Name, entry)
}
