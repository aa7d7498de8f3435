package blackbox

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// A trove is what a test of secrets collects: the secrets, by what they are, and the places where none may stand.
type trove struct {
	t       *testing.T
	secrets map[string]string
	places  map[string]string
}

// keep notes a secret.
func (v *trove) keep(name, secret string) {
	v.t.Helper()
	if len(secret) < 10 {
		v.t.Fatalf("the %s is %q", name, secret)
	}
	v.secrets[name] = secret
}

// walked notes what a browser was shown. links are URLs that hold a secret because they were handed out so, and redirect
// is where the client gets its code.
func (v *trove) walked(p *person, redirect string, links ...string) {
	v.t.Helper()
	for i, at := range p.pages {
		name := fmt.Sprintf("%d %s %s", i, at.method, strings.Split(at.url, "?")[0])
		if slices.Contains(links, at.url) {
			name = fmt.Sprintf("%d the link", i)
		} else {
			v.places["URL of "+name] = at.url
		}
		v.places["page "+name] = withoutTokens(v.t, at.body)
		header := at.header.Clone()
		header.Del("Set-Cookie")
		if strings.HasPrefix(header.Get("Location"), redirect) {
			header.Del("Location")
			if at.header.Get("Referrer-Policy") != "no-referrer" {
				v.t.Errorf("%s leads to the client with Referrer-Policy %q", name, at.header.Get("Referrer-Policy"))
			}
		}
		v.places["header of "+name] = fmt.Sprint(header)
		// What stands in the URL of our pages goes to no other site; a link with a secret in it goes nowhere.
		policy := at.header.Get("Referrer-Policy")
		if policy != "no-referrer" && (policy != "same-origin" || slices.Contains(links, at.url)) {
			v.t.Errorf("%s has Referrer-Policy %q", name, policy)
		}
		for _, f := range formsOf(v.t, at.body) {
			if csrf := f.values.Get("csrf"); csrf != "" {
				v.secrets["CSRF token"] = csrf
			}
		}
	}
	site, err := url.Parse(p.origin)
	must(v.t, err)
	for _, c := range p.client.Jar.Cookies(site) {
		v.keep(fmt.Sprintf("cookie %s %d", c.Name, len(v.secrets)), c.Value)
	}
}

// files notes every file below a directory.
func (v *trove) files(dir string, but ...string) (n int) {
	v.t.Helper()
	must(v.t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || slices.Contains(but, path) {
			return err
		}
		n++
		text, err := os.ReadFile(path)
		v.places["file "+strings.TrimPrefix(path, dir)] = path + "\n" + string(text)
		return err
	}))
	return n
}

// invited follows a link, chooses the person's password, and is signed in.
func invited(p *person, link string) {
	p.t.Helper()
	at := p.send(http.MethodGet, link, "", nil)
	at = p.send(http.MethodGet, p.resolve(link, at.header.Get("Location")), "", nil)
	for _, f := range formsOf(p.t, at.body) {
		if f.kinds["again"] != "password" {
			continue
		}
		f.values.Set("password", p.password)
		f.values.Set("again", p.password)
		if done := p.send(f.method, p.resolve(at.url, f.action), at.url, f.values); done.status != http.StatusSeeOther {
			p.t.Fatalf("the password is not taken: %d\n%s", done.status, done.body)
		}
		return
	}
	p.t.Fatalf("the link leads to %d %s\n%s", at.status, at.url, at.body)
}

// entered signs a person in with a password, on the way to what a client asks for.
func entered(p *person, name, start string) (at page) {
	p.t.Helper()
	at = p.send(http.MethodGet, start, "", nil)
	for range 6 {
		if at.status >= 300 && at.status < 400 {
			at = p.send(http.MethodGet, p.resolve(at.url, at.header.Get("Location")), at.url, nil)
			continue
		}
		for _, f := range formsOf(p.t, at.body) {
			if f.kinds["password"] == "password" {
				f.values.Set("name", name)
				f.values.Set("password", p.password)
				return p.send(f.method, p.resolve(at.url, f.action), at.url, f.values)
			}
		}
		break
	}
	p.t.Fatalf("%s asks for no password: %d\n%s", at.url, at.status, at.body)
	return page{}
}

// TestSecretsOfATeam: two people are invited, one of them signs in twice, clients get, refresh, repeat and lose tokens, and
// mistakes are made with each secret. Then none stands, in whatever form, in the log at its debug level, the audit, the
// metrics, any file of the server or the workspace, a page, a header, a URL, a command's output or in /proc. A crash
// leaves no core.
func TestSecretsOfATeam(t *testing.T) {
	t.Parallel()
	d := &door{deployment: &deployment{t: t, program: replaytest.Program(t), home: t.TempDir(), address: replaytest.Reserved(t)}}
	d.work = leaktest.Dir(t)
	measured := replaytest.Reserved(t)
	d.set = []string{"CODEHAND_LOG_LEVEL=debug", "CODEHAND_SANDBOX_POLICY=off", "CODEHAND_METRICS_LISTEN=" + measured, "GOTRACEBACK=crash"}
	replaytest.Lay(t, d.work, map[string]string{"alice/a.txt": "a", "bob/b.txt": "b"})
	replaytest.Lay(t, d.home, map[string]string{".config/codehand/config.toml": "[auth]\nmode = \"team\"\n[principals.default]\nroots = ['" +
		d.work + "/{principal}']\n[http]\nlisten = ['" + d.address + "']\n"})
	serve := d.codehand("serve")
	serve.Args = append([]string{"sh", "-c", `ulimit -c unlimited; exec "$@"`, "sh"}, serve.Args...)
	sh, err := exec.LookPath("sh")
	must(t, err)
	serve.Path = sh
	d.s = startDaemon(t, serve)
	v := &trove{t: t, secrets: map[string]string{}, places: map[string]string{}}

	link := func(name string) string {
		at := strings.Replace(d.output("invite", name), "localhost", "127.0.0.1", 1)
		v.keep("invitation of "+name+fmt.Sprint(" ", len(v.secrets)), at[strings.LastIndexByte(at, '/')+1:])
		return at
	}
	revoked, alices, bobs, open := link("alice"), link("alice"), link("bob"), link("carol")
	alice, bob := newPerson(t, d.s.url, "alice "+rand.Text()), newPerson(t, d.s.url, "bob/+&<"+rand.Text())
	alice.name, bob.name = "alice", "bob"
	v.keep("password of alice", alice.password)
	v.keep("password of bob", bob.password)
	alice.send(http.MethodGet, revoked, "", nil)
	invited(alice, alices)
	invited(bob, bobs)
	late := newPerson(t, d.s.url, alice.password)
	late.send(http.MethodGet, alices, "", nil)
	d.output("invite", "--revoke", inviteOf(t, d, "carol"))
	late.send(http.MethodGet, open, "", nil)

	a, b := d.register("http://127.0.0.1:33419/callback"), d.register("http://127.0.0.1:33420/callback")
	v.keep("verifier", a.verifier)
	v.keep("verifier of bob's client", b.verifier)
	issue := func(of string, g grantReply) grantReply {
		t.Helper()
		if g.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", of, g.Status, g.Body)
		}
		v.keep("access token: "+of, g.Access)
		v.keep("refresh token: "+of, g.Refresh)
		return g
	}
	codes := func(of string, a *app, p *person) string {
		t.Helper()
		c := a.code(p)
		v.keep("code: "+of, c)
		return c
	}
	spent := codes("spent", a, alice)
	first := issue("first", a.token(a.redeem(spent)))
	second := issue("second", a.token(a.renew(first.Refresh)))
	third := issue("third", a.token(a.renew(second.Refresh)))
	again := newPerson(t, d.s.url, alice.password)
	again.name = "alice"
	if at := entered(again, "alice", a.authorizeURL(a.wish())); at.status != http.StatusSeeOther {
		t.Fatalf("alice's password: %d\n%s", at.status, at.body)
	}
	returned := codes("of a second browser", a, again)
	other := issue("of a second browser", a.token(a.redeem(returned)))
	bobs1 := issue("bob's", b.token(b.redeem(codes("bob's", b, bob))))
	stolen := issue("of a stolen grant", b.token(b.redeem(codes("of a stolen grant", b, bob))))
	thief := issue("of a thief", b.token(b.renew(stolen.Refresh)))
	issue("of a thief, once more", b.token(b.renew(thief.Refresh)))
	if g := b.token(b.renew(stolen.Refresh)); g.Status != http.StatusBadRequest {
		t.Errorf("a stolen token: %d", g.Status)
	}
	unspent := codes("unspent", b, bob)
	for _, token := range []string{third.Access, other.Access, bobs1.Access} {
		if got := d.opens(token); got != http.StatusOK {
			t.Errorf("a good token: %d", got)
		}
	}

	// The rest of their lives.
	d.post("/oauth/revoke", "application/x-www-form-urlencoded", url.Values{"token": {other.Refresh}, "client_id": {a.id}}.Encode(), nil)
	if got := d.opens(other.Access); got != http.StatusUnauthorized {
		t.Errorf("after revocation: %d", got)
	}
	v.places["grants"] = d.output("grants", "list", "--json") + d.output("grants", "list")
	v.places["invitations"] = d.output("invite", "--list", "--json") + d.output("invite", "--list")
	d.revokeAll()
	for _, token := range []string{third.Access, bobs1.Access} {
		if got := d.opens(token); got != http.StatusUnauthorized {
			t.Errorf("after all were revoked: %d", got)
		}
	}
	if g := b.token(changed(b.redeem(unspent), "code_verifier", strings.Repeat("w", 43))); g.Status != http.StatusBadRequest {
		t.Errorf("a code with another verifier: %d", g.Status)
	}

	// Every secret, where it does not belong.
	wrong := newPerson(t, d.s.url, "x"+alice.password)
	entered(wrong, "alice", a.authorizeURL(a.wish()))
	entered(newPerson(t, d.s.url, "y"), bob.password, a.authorizeURL(a.wish())) // as the name
	for _, secret := range slices.Collect(maps.Values(v.secrets)) {
		x := d.besieged(t) // mistakes are limited by address
		x.json("/mcp", hello, "Authorization", "Bearer "+strings.Map(printed, secret))
		x.json("/mcp", hello, "Authorization", "Bearer "+strings.Map(printed, secret)+"x")
		x.form("/oauth/token", a.renew(secret))
		x.form("/oauth/token", changed(a.redeem(secret), "code_verifier", secret))
		x.form("/oauth/token?"+url.Values{"token": {secret}}.Encode(), url.Values{secret: {"x"}})
		x.get("/oauth/authorize?" + url.Values{"client_id": {secret}, "redirect_uri": {secret}}.Encode())
		x.get("/signin/ask/" + url.PathEscape(secret))
		x.get("/mcp?access_token="+url.QueryEscape(secret), "Authorization", "Basic "+strings.Map(printed, secret))
		x.get("/"+url.PathEscape(secret), "Mcp-Session-Id", strings.Map(printed, secret), "User-Agent", strings.Map(printed, secret))
	}
	for _, p := range []*person{alice, bob, late, again, wrong} {
		v.walked(p, "http://127.0.0.1:334", alices, bobs, revoked, open)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+measured+"/metrics", nil)
	must(t, err)
	metrics := answered(t, plainly, r)
	if metrics.Status != http.StatusOK || !strings.Contains(metrics.Body, "codehand_auth_total") {
		t.Errorf("metrics: %d %.300s", metrics.Status, metrics.Body)
	}
	v.places["metrics"] = metrics.Body
	v.process(d.s.cmd.Process.Pid)
	dumped := d.crashed()
	v.places["log"] = d.s.log.String()
	n := v.files(d.home) + v.files(d.work)
	v.searched()
	// The search saw the files that know of the grants.
	all := strings.Join(slices.Collect(maps.Values(v.places)), "\n")
	for _, known := range []string{a.id, `"login"`, `"logout"`, "alice", "codehand_auth_total"} {
		if !strings.Contains(all, known) {
			t.Errorf("%s stands nowhere, so the search is blind", known)
		}
	}
	t.Logf("%d secrets in %d forms each: nowhere in %d places, %d of them files; the crash left a core: %v", len(v.secrets),
		2*len(formsOfSecret("0123456789")), len(v.places), n, dumped)
}

// printed is r if it may stand in a header.
func printed(r rune) rune {
	if r < ' ' || r > '~' {
		return '.'
	}
	return r
}

// inviteOf is the id of the open invitation of a principal.
func inviteOf(t *testing.T, d *door, name string) string {
	t.Helper()
	var all []struct{ ID, Principal, State string }
	must(t, json.Unmarshal([]byte(d.output("invite", "--list", "--json")), &all))
	for _, i := range all {
		if i.Principal == name && i.State == "open" {
			return i.ID
		}
	}
	t.Fatalf("no open invitation of %s: %+v", name, all)
	return ""
}

// process notes what the system tells others of a process. Only root may read the environment of serve at all.
func (v *trove) process(pid int) {
	v.t.Helper()
	for _, name := range []string{"cmdline", "environ", "comm", "status", "maps"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if hidden := name == "environ" || name == "maps"; hidden && os.Getuid() != 0 {
			if !errors.Is(err, fs.ErrPermission) {
				v.t.Errorf("/proc/PID/%s: %v", name, err)
			}
			continue
		}
		must(v.t, err)
		v.places["/proc/PID/"+name] = string(text)
	}
}

// searched looks for all secrets in all places.
func (v *trove) searched() {
	v.t.Helper()
	for place, text := range v.places {
		for _, found := range secretsIn(text, v.secrets) {
			v.t.Errorf("%s has the %s", place, found)
		}
	}
}

// crashed ends the server as a fault would, where limits and GOTRACEBACK allow a core, and says whether there is one. The
// same end of another program shows that this machine dumps cores at all.
func (d *door) crashed() bool {
	d.t.Helper()
	must(d.t, d.s.cmd.Process.Signal(syscall.SIGABRT))
	d.s.exit()
	ended := d.s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ended.Signaled() {
		d.t.Errorf("SIGABRT ended the server with %d, not as a crash", ended.ExitStatus())
	}
	if ended.CoreDump() {
		d.t.Error("the server left a core")
	}
	control := exec.Command("sh", "-c", "ulimit -c unlimited; kill -ABRT $$")
	control.Dir = d.t.TempDir()
	control.Stderr = io.Discard
	_ = control.Run() // it was killed
	if !control.ProcessState.Sys().(syscall.WaitStatus).CoreDump() {
		d.t.Log("this machine dumps no cores, so that serve leaves none shows nothing here")
	}
	return ended.CoreDump()
}
