// Package oauth is the authorization server of serve: OAuth 2.1 for clients that cannot be given a token by hand.
//
// It owns the protocol and what is remembered of it: clients, sign-ins that wait for a person (Ask), and what a person
// approved (Grant). It shows no page and knows no password: the pages of server/signin find out who sits in front of
// the browser, and then call Approve or Refuse. It is an auth.Source for the access tokens that it issues.
//
// It has RFC 6749 as OAuth 2.1 narrows it (code with PKCE S256, refresh tokens that rotate), 7009 (revocation), 7591
// (registration), 8414 and 9728 (metadata), 8252 (loopback ports), 8707 (resource), 9207 (iss), and clients whose id is
// the URL of a metadata document. Clients are public: none has a secret. Why no library
// does it: docs/decisions/018-own-authorization-server.md.
//
// Lives: a sign-in waits 10 minutes for a person, a code 60 seconds for its client; an access token holds an hour; a
// grant holds as long as was approved, at most a year, and ends when it is not refreshed for 30 days. What ends a grant
// ends all its tokens, and the streams that they opened. Nothing that opens a door is kept but as SHA-256.
package oauth
