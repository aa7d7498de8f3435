package signin

import (
	"strconv"
	"strings"

	"codehand/server/auth"
	"codehand/server/people"
)

// message is a page with one paragraph.
func (m message) show(v view) node {
	return all(para(text(m.Text)),
		when(m.Link != "", para(el("a", attrs{"href", v.base + v.query}, text(m.Link)))))
}

func (f loginForm) show(v view) node {
	said, forgotten := "", para(text("Ask the operator for a new link ("),
		el("code", nil, text("codehand invite NAME")), text(")."))
	if v.alone {
		forgotten = para(text("Run "), el("code", nil, text("codehand owner new")),
			text(" on the machine where codehand runs. It prints a new one."))
	}
	password := attrs{"id", "password", "name", "password", "type", "password", "autocomplete", "current-password",
		"maxlength", "1024", "required", ""}
	if v.alone || f.Name != "" {
		password = append(password, "autofocus", "")
	}
	if f.Wrong {
		said = "The name or the password is wrong."
		if v.alone {
			said = "The password is wrong."
		}
		password = append(password, "aria-invalid", "true", "aria-describedby", "wrong")
	}
	return all(
		when(f.Client != "", para(text("to decide what "), strong(f.Client), text(" may do."))),
		wrong(said),
		v.form("login", hiddenField("ask", f.Ask), f.nameOf(v),
			el("label", attrs{"for", "password"}, text("Password")), el("input", password),
			el("button", nil, text("Sign in"))),
		when(f.Again, note("You sign in each time: over plain http your browser shows its cookie "+
			"to other servers on this machine, too.")),
		v.passkey(toLogin, f.Ask, el("p", attrs{"class", "or"}, text("or")), second("Sign in with a passkey")),
		el("details", nil, el("summary", nil, text("Password forgotten?")), forgotten))
}

// nameOf is where the name is typed. The owner has none to type.
func (f loginForm) nameOf(v view) node {
	if v.alone {
		return nameField(people.Owner)
	}
	with := attrs{"id", "name", "name", "name", "type", "text", "autocomplete", "username webauthn",
		"autocapitalize", "none", "autocorrect", "off", "spellcheck", "false", "maxlength", "200",
		"required", ""}.with("value", f.Name)
	if f.Name == "" {
		with = append(with, "autofocus", "")
	}
	return all(el("label", attrs{"for", "name"}, text("Name")), el("input", with))
}

// second is a button that our script uses.
func second(s string) node { return el("button", attrs{"type", "button", "class", "second"}, text(s)) }

func (a approval) show(v view) node {
	c := a.Ask.Client
	name, answer := c.Name, c.RedirectHost
	if name == "" {
		name = "(no name)"
	}
	if c.Loopback {
		answer = "a program on the computer in front of you"
	}
	host := all(styled("warn", "not verified."), text(" Anybody can use this name."))
	if c.Host != "" {
		host = all(text(c.Host+" "), styled("good", "verified"))
	}
	minutes := strconv.Itoa(a.Minutes) + " more minutes."
	if a.Minutes == 1 {
		minutes = "1 more minute."
	}
	return all(
		el("p", attrs{"class", "lead"}, strong(a.Client), text(" wants to work on this machine on your behalf.")),
		el("dl", nil, row("Calls itself", text(name)), row("Its host", host), row("Answer goes to", text(answer))),
		wrong(a.Wrong),
		v.form("", hiddenField("offered", a.Offered),
			el("fieldset", nil, el("legend", nil, text("What it may do")), a.rights()),
			el("fieldset", nil, el("legend", nil, text("Where")), a.where()),
			el("fieldset", nil, el("legend", nil, text("How")),
				selection("mode", "What it may do unasked", a.Modes), selection("life", "For how long", a.Lives)),
			note("Did you not start this yourself, just now? Then refuse. You can end what you allow at any time."),
			el("div", attrs{"class", "buttons"},
				el("button", attrs{"name", "decision", "value", "approve"}, text("Allow")),
				el("button", attrs{"name", "decision", "value", "refuse", "class", "second"}, text("Refuse"))),
			note("This page is valid for "+minutes)))
}

func (a approval) rights() node {
	return all(
		option(attrs{"type", "radio", "name", "access", "value", "all", "checked", ""},
			text("Everything that it asks for")),
		el("ul", attrs{"class", "can"}, each(a.Can, func(s string) node { return el("li", nil, text(s)) })),
		when(a.CanRead, option(attrs{"type", "radio", "name", "access", "value", "read"},
			text("Only read and search files"))),
		when(len(a.Cannot) > 0, note("It also asks for what you do not have: "+strings.Join(a.Cannot, "; ")+".")),
		when(a.Commands != "", note(a.Commands)))
}

func (a approval) where() node {
	switch len(a.Roots) {
	case 0:
		return note("No directory.")
	case 1:
		return el("p", attrs{"class", "path"}, text(a.Roots[0]))
	}
	return each(a.Roots, func(root string) node {
		return option(attrs{"type", "checkbox", "name", "root", "value", root, "checked", ""}, text(root), "path")
	})
}

// option is a box or button with its label.
func option(input attrs, label node, class ...string) node {
	return el("label", attrs{"class", "option"}, el("input", input),
		el("span", attrs{"class", strings.Join(append(class, "said"), " ")}, label))
}

func selection(name, label string, choices []choice) node {
	return all(el("label", attrs{"for", name}, text(label)),
		el("select", attrs{"id", name, "name", name}, each(choices, func(c choice) node {
			with := attrs{"value", c.Value}
			if c.Chosen {
				with = append(with, "selected", "")
			}
			return el("option", with, text(c.Text))
		})))
}

func (a accountPage) show(v view) node {
	return all(
		para(el("a", attrs{"href", v.base + "../" + v.query}, text("What waits for your approval"))),
		each(a.Grants, func(g grantRow) node { return g.show(v) }),
		when(len(a.Grants) == 0, para(text("No client has access at the moment."))),
		el("section", attrs{"aria-labelledby", "keys"}, el("h2", attrs{"id", "keys"}, text("Your passkeys")),
			a.keys(v)))
}

func (g grantRow) show(v view) node {
	host := styled("warn", "not verified")
	if h := g.Grant.Client.Host; h != "" {
		host = all(text(h+" "), styled("good", "verified"))
	}
	where := each(g.Roots, func(root string) node { return all(styled("path", root), el("br", nil)) })
	if len(g.Roots) == 0 {
		where = text("all your directories")
	}
	// One client may have several grants: the date tells them apart.
	allowed := el("span", attrs{"id", "d-" + g.ID}, text(minute(g.Created)))
	end := "End access of " + g.Client + ", allowed " + minute(g.Created)
	return el("article", attrs{"class", "card", "aria-labelledby", "g-" + g.ID + " d-" + g.ID},
		el("h2", attrs{"id", "g-" + g.ID}, text(g.Client)),
		el("dl", nil, row("Host", host), row("May", text(strings.Join(g.Can, "; "))),
			when(g.Scopes != auth.Read, row("Unasked", text(unasked(g.MaxMode)))),
			row("Where", where), row("Allowed", allowed), row("Last use", text(minute(g.LastUse))),
			row("Ends", text(minute(g.Expires)))),
		v.form("revoke", hiddenField("grant", g.ID),
			el("button", attrs{"class", "danger", "aria-label", end}, text("End access"))))
}

func (a accountPage) keys(v view) node {
	list := el("ul", attrs{"class", "keys"}, each(a.Keys, func(k people.Passkey) node {
		return el("li", nil,
			el("span", nil, strong(k.Name), el("br", nil),
				styled("note", "for "+k.Host+", added "+day(k.Created)+", last used "+day(k.Used))),
			v.form("passkey/remove", hiddenField("key", k.ID),
				el("button", attrs{"class", "danger", "aria-label", "Remove the passkey " + k.Name}, text("Remove"))))
	}))
	if len(a.Keys) == 0 {
		list = para(text("None. A passkey signs you in with your finger, face or PIN, and cannot be given away to a " +
			"false page."))
	}
	switch {
	case !v.passkeys:
		return all(list, note("To add one, open this page under a host name, such as localhost."))
	case !a.Fresh:
		return all(list, note("To add one, sign out and in again first."))
	}
	return all(list,
		v.passkey(toRegister, "", el("label", attrs{"for", "key-name"}, text("What to call it")),
			el("input", attrs{"id", "key-name", "type", "text", "maxlength", "60", "value", "This device",
				"autocomplete", "off"}),
			second("Add a passkey")),
		el("noscript", nil, note("Adding a passkey needs JavaScript.")))
}

func (f inviteForm) show(v view) node {
	described := "rule"
	if f.Wrong != "" {
		described = "rule wrong"
	}
	return all(
		para(text("You are invited as "), strong(f.Principal),
			text(". Choose how you sign in from now on. This link works once.")),
		wrong(f.Wrong),
		v.form("invite", nameField(f.Principal),
			el("label", attrs{"for", "password"}, text("New password")),
			newPassword("password", "autofocus", "", "aria-describedby", described),
			el("p", attrs{"class", "note", "id", "rule"},
				text("At least 12 characters. Several words are easier to keep in mind than signs.")),
			el("label", attrs{"for", "again"}, text("The same again")), newPassword("again"),
			el("button", nil, text("Set the password"))),
		v.passkey(toAccept, "", el("p", attrs{"class", "or"}, text("or")), second("Use a passkey instead")))
}

func newPassword(name string, more ...string) node {
	return el("input", append(attrs{"id", name, "name", name, "type", "password", "autocomplete", "new-password",
		"minlength", "12", "maxlength", "1024", "required", ""}, more...))
}
