package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"codehand/server/sessions"
	"codehand/tools/session"
)

// TestSessionRights: a person sees what a session may do and where that comes from, escaped, sets its mode and rules and
// takes these back; where the person may decide nothing, nothing is offered.
func TestSessionRights(t *testing.T) {
	t.Parallel()
	x := &work{rights: []sessions.Rights{{Key: session.Key{Principal: "ann"}, Mode: "default", Chosen: "default", Usual: "acceptEdits", Modes: []string{"plan", "default"},
		Rules: []sessions.HeldRule{
			{NamedRule: sessions.NamedRule{List: "allow", Rule: "Bash(npm run *)<b>\u202e"}, Skill: "<i>", Since: time.Now()},
			{NamedRule: sessions.NamedRule{List: "deny", Rule: "Edit"}, By: "bob", Since: time.Now()},
			{NamedRule: sessions.NamedRule{List: "allow", Rule: "Edit(x)"}, Since: time.Now()},
		}}}}
	text := get(working(ann(), x), "/activity?session=00000001").Body.String()
	for _, want := range []string{"Mode <strong>default</strong>", "the settings say acceptEdits", `<option value="default" selected>`, "Bash(npm run *)&lt;b&gt;\\u202e</code>", "lent by skill &lt;i&gt;", "Take back",
		"deny <code>Edit</code></td><td>set here by bob</td>", "allow <code>Edit(x)</code></td><td>allowed when a call asked</td>", `<option value="ask">`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if strings.Contains(text, "<b>") || strings.Contains(text, "<i>") || strings.Contains(text, `value="acceptEdits"`) {
		t.Error(text)
	}
	if all := get(working(ann(), x), "/activity").Body.String(); strings.Contains(all, "console/rights") {
		t.Error("rights without a session")
	}
	barred := ann()
	barred.Bars = "Not here."
	if text := get(working(barred, x), "/activity?session=00000001").Body.String(); strings.Contains(text, "console/rights") {
		t.Error("who may decide nothing is offered it")
	}
	for name, c := range map[string]struct {
		who     Person
		form    url.Values
		err     error
		headers []string
		at      string
		changed string
	}{
		"a mode":          {ann(), url.Values{"mode": {"plan"}}, nil, nil, "../activity?session=00000001&done=mode", "ann: ann 00000001 mode plan"},
		"the settings'":   {ann(), url.Values{"mode": {""}}, nil, nil, "../activity?session=00000001&done=mode", "ann: ann 00000001 mode "},
		"a rule":          {ann(), url.Values{"list": {"deny"}, "rule": {" Bash(x) "}}, nil, nil, "../activity?session=00000001&done=set", "ann: ann 00000001 set deny Bash(x)"},
		"a wrong rule":    {ann(), url.Values{"list": {"deny"}, "rule": {"Bash("}}, &sessions.RuleError{Text: "it is <wrong>"}, nil, "400: Nothing was done: it is &lt;wrong&gt;", "ann: ann 00000001 set deny Bash("},
		"a rule taken":    {ann(), url.Values{"do": {"take"}, "list": {"ask"}, "rule": {"Bash(x)"}}, nil, nil, "../activity?session=00000001&done=taken", "ann: ann 00000001 take ask Bash(x)"},
		"not in use":      {ann(), url.Values{"mode": {"plan"}}, sessions.ErrNotOpen, nil, "../activity?session=00000001&done=closed", "ann: ann 00000001 mode plan"},
		"not offered":     {ann(), url.Values{"mode": {"bypassPermissions"}}, sessions.ErrMode, nil, "400", "ann: ann 00000001 mode bypassPermissions"},
		"a fault":         {ann(), url.Values{"mode": {"plan"}}, errors.New("down"), nil, "503", "ann: ann 00000001 mode plan"},
		"both":            {ann(), url.Values{"mode": {"plan"}, "rule": {"x"}}, nil, nil, "400", ""},
		"neither":         {ann(), url.Values{}, nil, nil, "400", ""},
		"no such name":    {ann(), url.Values{"mode": {"plan"}, "session": {"x"}}, nil, nil, "400", ""},
		"barred":          {barred, url.Values{"mode": {"plan"}}, nil, nil, "403", ""},
		"not signed in":   {Person{Token: ann().Token}, url.Values{"mode": {"plan"}}, nil, nil, "403", ""},
		"a wrong token":   {ann(), url.Values{"mode": {"plan"}, "csrf": {"x"}}, nil, nil, "403", ""},
		"another origin":  {ann(), url.Values{"mode": {"plan"}}, nil, []string{"Sec-Fetch-Site", "", "Origin", "http://evil"}, "403", ""},
		"another site":    {ann(), url.Values{"mode": {"plan"}}, nil, []string{"Sec-Fetch-Site", "cross-site"}, "403", ""},
		"two modes of it": {ann(), url.Values{"mode": {"plan", "bypassPermissions"}}, nil, nil, "400", ""},
	} {
		x := &work{err: c.err}
		form := url.Values{"csrf": {c.who.Token}, "of": {"ann"}, "session": {"00000001"}}
		for k, v := range c.form {
			form[k] = v
		}
		w := press(working(c.who, x), "rights", form, c.headers...)
		at := w.Header().Get("Location")
		if w.Code != http.StatusSeeOther {
			at = w.Result().Status[:3]
		}
		if _, want, more := strings.Cut(c.at, ": "); more && strings.Contains(w.Body.String(), want) {
			at += ": " + want
		}
		if at != c.at || strings.Join(x.changed, "|") != c.changed {
			t.Errorf("%s: %s, %q", name, at, x.changed)
		}
	}
}
