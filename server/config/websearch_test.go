package config

import (
	"strings"
	"testing"
)

// What could not work with a search endpoint, or would show its key, is told at the start; a key is named and never
// held in a file of settings.
func TestWebSearchTogether(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no address":    {`web.search.kind = "searxng"`, "web.search.kind: the address must begin with"},
		"no key":        {`web.search.kind = "brave"`, "web.search.kind: the kind brave needs a key"},
		"two keys":      {"web.search.kind = \"brave\"\nweb.search.key_env = \"A_KEY\"\nweb.search.key_file = \"/k\"", "not both"},
		"without kind":  {`web.search.url = "https://searx.example"`, "web.search.url: counts only with web.search.kind"},
		"a key":         {"web.search.kind = \"brave\"\nweb.search.key_env = \"BSA-my-key\"", "the key itself does not belong here"},
		"all variables": {"web.search.kind = \"brave\"\nweb.search.key_env = \"BRAVE_*\"", "must be the name"},
		"relative":      {"web.search.kind = \"brave\"\nweb.search.key_file = \"key\"", "must be an absolute path"},
		"wrong kind":    {`web.search.kind = "bing"`, "must be one of off, searxng, brave, tavily, template"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			w.user(t, c.text+"\n")
			if got := w.refused(t).Error(); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("in a root", func(t *testing.T) {
		w := newWorld(t)
		w.user(t, "web.search.kind = \"brave\"\nweb.search.key_file = \""+w.path("project/key")+"\"\n")
		c, _ := w.load(t)
		rules := c.Permissions.Deny
		if len(rules) == 0 || rules[len(rules)-1].Text != "Read(/"+w.path("project/key")+")" {
			t.Errorf("no rule keeps calls from it: %+v", rules)
		}
	})
	t.Run("good", func(t *testing.T) {
		w := newWorld(t)
		w.Env = append(w.Env, "A_KEY=plantedkey")
		w.user(t, "[web.search]\nkind = \"brave\"\nkey_env = \"A_KEY\"\n")
		c, _ := w.load(t)
		e := c.Web.Search.options()
		if key, err := e.Key.Read(); key != "plantedkey" || err != nil || !c.Web.Search.On() {
			t.Errorf("%q, %v", key, err)
		}
		if names, files := c.KeyEnvs(), c.KeyFiles(); len(names) != 1 || names[0] != "A_KEY" || files != nil {
			t.Errorf("%q, %q", names, files)
		}
	})
}

// A repository neither names the endpoint nor the variable that goes to it.
func TestWebSearchOfProject(t *testing.T) {
	w := newWorld(t)
	w.write(t, "project/.codehand/config.toml", "[web.search]\nkind = \"searxng\"\nurl = \"https://evil.example\"\nkey_env = \"HOME\"\n")
	c, warnings := w.load(t)
	if c.Web.Search.On() || c.Web.Search.URL != "" || c.KeyEnvs() != nil || len(warnings) != 1 {
		t.Errorf("%+v, %v", c.Web.Search, warnings)
	}
}
