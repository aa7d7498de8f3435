// Package oauth is the authorization server of serve: OAuth 2.1 for clients that cannot be given a token by hand.
//
// It owns the protocol and what is remembered of it: clients, sign-ins that wait for a person (Ask), and what a person
// approved (Grant). It shows no page and knows no password: the pages of server/signin find out who sits in front of
// the browser, and then call Approve or Refuse. It is an auth.Source for the access tokens that it issues.
package oauth
