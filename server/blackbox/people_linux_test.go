package blackbox

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// press presses the first button of a page in whose form each field has its value.
func press(p *person, at page, path string, fields ...string) page {
	p.t.Helper()
	for _, f := range formsOf(p.t, at.body) {
		match := strings.HasSuffix(f.action, path)
		for i := 0; i < len(fields); i += 2 {
			match = match && (f.values.Get(fields[i]) == fields[i+1] || f.kinds[fields[i]] == "text")
		}
		if !match {
			continue
		}
		for i := 0; i < len(fields); i += 2 {
			f.values.Set(fields[i], fields[i+1])
		}
		return follow(p, p.send(f.method, p.resolve(at.url, f.action), at.url, f.values))
	}
	p.t.Fatalf("no form for %s %q: %s", path, fields, at.body)
	return page{}
}

// follow goes where an answer leads.
func follow(p *person, at page) page {
	p.t.Helper()
	for at.status == http.StatusSeeOther || at.status == http.StatusFound {
		at = p.send(http.MethodGet, p.resolve(at.url, at.header.Get("Location")), at.url, nil)
	}
	return at
}

// click follows the link of a page with a text.
func click(p *person, at page, text string) page {
	p.t.Helper()
	m := regexp.MustCompile(`<a href="([^"]*)"[^>]*>` + regexp.QuoteMeta(text) + `<`).FindStringSubmatch(at.body)
	if m == nil {
		p.t.Fatalf("no link %q: %s", text, at.body)
	}
	return follow(p, p.send(http.MethodGet, p.resolve(at.url, strings.ReplaceAll(m[1], "&amp;", "&")), at.url, nil))
}

// TestPeopleOfATeam: on the page an administrator sees who may call and what acts for each, ends the access of a client
// and a token, which are refused from then on, invites a person, who signs in by that link, and withdraws another
// invitation. Who is no administrator can do none of it.
func TestPeopleOfATeam(t *testing.T) {
	t.Parallel()
	d := &door{deployment: &deployment{t: t, program: replaytest.Program(t), home: t.TempDir(),
		address: replaytest.Reserved(t)}}
	d.work = leaktest.Dir(t)
	d.set = []string{"CODEHAND_SANDBOX_POLICY=off"}
	replaytest.Lay(t, d.work, map[string]string{"bob/b.txt": "b", "carol/c.txt": "c", "dora/d.txt": "d"})
	replaytest.Lay(t, d.home, map[string]string{".config/codehand/config.toml": "[auth]\nmode = \"team\"\n" +
		"[principals.default]\nroots = ['" + d.work + "/{principal}']\n" +
		"[principals.carol]\nadmin = true\n[principals.gone]\nenabled = false\n" +
		"[http]\nlisten = ['" + d.address + "']\n"})
	token := strings.TrimSpace(d.output("token", "new", "bob", "--note", "laptop"))
	d.s = startDaemon(t, d.codehand("serve"))
	at := func(link string) string { return strings.Replace(link, "localhost", "127.0.0.1", 1) }
	joins := func(name, link string) *person {
		p := newPerson(t, d.s.url, "the words of "+name)
		p.name = name
		invited(p, at(link))
		return p
	}
	signs := func(p *person) page {
		return follow(p, entered(p, p.name, d.s.url+"/signin/?for=approvals"))
	}
	bob, carol := joins("bob", d.output("invite", "bob")), joins("carol", d.output("invite", "carol"))
	a := d.register("http://127.0.0.1:33419/callback")
	g := a.token(a.redeem(a.code(bob)))
	good := func() [2]bool { // the client's token, and that of the tokens file
		byToken := d.post("/t/mcp", "application/json", hello, map[string]string{"Authorization": "Bearer " + token,
			"Accept": "application/json, text/event-stream"}).Status
		return [2]bool{d.opens(g.Access) == http.StatusOK, byToken == http.StatusOK}
	}
	if good() != [2]bool{true, true} {
		t.Fatalf("what acts for bob: %v", good())
	}

	home := signs(bob)
	if strings.Contains(home.body, ">People<") {
		t.Errorf("bob is led to people: %s", home.body)
	}
	query := home.url[strings.IndexByte(home.url, '?'):]
	got := bob.send(http.MethodGet, d.s.url+"/people"+query, home.url, nil)
	if got.status != http.StatusForbidden || strings.Contains(got.body, "carol") {
		t.Errorf("bob sees people: %d %s", got.status, got.body)
	}
	csrf := ""
	for _, f := range formsOf(t, home.body) {
		csrf = f.values.Get("csrf")
	}
	for path, form := range map[string]url.Values{
		"/console/invite": {"csrf": {csrf}, "name": {"carol"}},
		"/console/end":    {"csrf": {csrf}, "kind": {"client"}, "id": {"x"}},
	} {
		got := bob.send(http.MethodPost, d.s.url+path, home.url, form)
		if got.status != http.StatusForbidden || !strings.Contains(got.body, "Only an administrator") {
			t.Errorf("bob, %s: %d %s", path, got.status, got.body)
		}
	}

	all := click(carol, signs(carol), "People")
	for _, has := range []string{"bob", "carol", "administrator", "may not call"} {
		if !strings.Contains(all.body, has) {
			t.Errorf("people lack %q: %s", has, all.body)
		}
	}
	one := click(carol, all, "bob")
	for _, has := range []string{"laptop", "Read and search files", "concurrent_calls", ">Activity<"} {
		if !strings.Contains(one.body, has) {
			t.Errorf("the page of bob lacks %q: %s", has, one.body)
		}
	}
	one = press(carol, one, "/console/end", "kind", "client")
	if !strings.Contains(one.body, "It has ended.") || good() != [2]bool{false, true} {
		t.Errorf("without the client of bob: %v; %s", good(), one.body)
	}
	one = press(carol, one, "/console/end", "kind", "token")
	if !strings.Contains(one.body, "Nothing.") || good() != [2]bool{} {
		t.Errorf("without the token of bob: %v; %s", good(), one.body)
	}

	all = click(carol, one, "All people")
	shown := press(carol, all, "/console/invite", "name", "dora")
	link := regexp.MustCompile(`http://127[^<"]*/signin/invite/chi_[A-Za-z0-9_-]+`)
	dora := joins("dora", link.FindString(shown.body))
	signs(dora)
	shown = press(carol, all, "/console/invite", "name", "eve")
	code := link.FindString(shown.body)
	press(carol, shown, "/console/end", "kind", "invitation")
	late := newPerson(t, d.s.url, "x")
	if got := follow(late, late.send(http.MethodGet, at(code), "", nil)); got.status != http.StatusGone {
		t.Errorf("an invitation that was ended: %d %s", got.status, got.body)
	}
	for _, name := range []string{"gone", "\t"} {
		got := press(carol, all, "/console/invite", "name", name)
		if got.status != http.StatusBadRequest || link.MatchString(got.body) {
			t.Errorf("an invitation for %q: %d %s", name, got.status, got.body)
		}
	}
	var events []string
	for _, m := range replaytest.AuditLines(t, filepath.Join(d.home, "state", "codehand", "audit")) {
		if m["ev"] == "page.invite" || m["ev"] == "page.end" {
			events = append(events, fmt.Sprint(m["ev"], " ", m["by"], " ", m["p"], " ", m["kind"]))
		}
		if strings.Contains(fmt.Sprint(m), "chi_") {
			t.Errorf("the secret of an invitation is in the audit: %v", m)
		}
	}
	if want := []string{"page.end carol bob client", "page.end carol bob token", "page.invite carol dora <nil>",
		"page.invite carol eve <nil>", "page.end carol eve invitation"}; !slices.Equal(events, want) {
		t.Errorf("the audit has %q, want %q", events, want)
	}
}
