package signin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"
)

// A ticket is in the links and forms of a page, and in no cookie. Cookies know no port: over plain http every server of
// this machine is sent ours as soon as the person opens a page of it, such as the dev server of a job. So the cookie
// alone is worth nothing there. Over https the cookie's prefix keeps it to hosts of ours.
const ticketName = "ticket"

// inQuery is a ticket as the query of a page of ours.
func inQuery(ticket string) string {
	if ticket == "" {
		return ""
	}
	return url.Values{ticketName: {ticket}}.Encode()
}

// queried is how links to pages of ours end.
func queried(ticket string) string {
	if ticket == "" {
		return ""
	}
	return "?" + inQuery(ticket)
}

// ticketOf is the ticket in the token of a form; "": there is none.
func (a asked) ticketOf(token string) string {
	if a.secure() {
		return ""
	}
	ticket, _, _ := strings.Cut(token, ".")
	return ticket
}

// seal makes a ticket of the code of an invitation, for one browser alone.
func (p *Pages) seal(cookie, code string) string {
	return base64.RawURLEncoding.EncodeToString(p.sealer().Seal(nil, nil, []byte(code), []byte(cookie)))
}

// unseal returns the code that a ticket of this browser has; "": none.
func (p *Pages) unseal(cookie, ticket string) string {
	sealed, err := base64.RawURLEncoding.DecodeString(ticket)
	if err != nil {
		return ""
	}
	code, err := p.sealer().Open(nil, nil, sealed, []byte(cookie))
	if err != nil {
		return ""
	}
	return string(code)
}

func (p *Pages) sealer() cipher.AEAD {
	key := sha256.Sum256([]byte(p.sign("invitations")))
	block, _ := aes.NewCipher(key[:]) // which takes 32 bytes
	sealer, _ := cipher.NewGCMWithRandomNonce(block)
	return sealer
}
